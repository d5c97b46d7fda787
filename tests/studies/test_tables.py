"""Tables as text and Markdown."""

from align_rudder.studies.tables import Table


def test_text_is_aligned():
    text = Table("t", ["a", "bb"], [["long name", "1"], ["x", "1,000"]]).text().splitlines()
    rule = "─" * 16
    assert text == [
        "t",
        rule,
        "a             bb",
        rule,
        "long name      1",
        "x          1,000",
        rule,
    ]


def test_markdown_has_title_and_notes_where_there_are_some():
    table = Table("t", ["a", "b"], [["x", "1"]], ("note",))
    assert table.markdown() == "**t**\n\n| a | b |\n|---|---:|\n| x | 1 |\n\nnote"
    assert Table("", ["a", "b"], []).markdown() == "| a | b |\n|---|---:|"
