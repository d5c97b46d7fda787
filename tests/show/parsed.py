"""HTML as a test reads it."""

from html.parser import HTMLParser


class Parsed(HTMLParser):
    """The scripts of a page by id, and every tag with its attributes."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.scripts, self.tags, self.title, self._inside = {}, [], "", None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = dict(attrs).get("id", tag)

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside == "title":
            self.title += data
        elif self._inside is not None:
            self.scripts[self._inside] = self.scripts.get(self._inside, "") + data
