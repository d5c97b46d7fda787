"""What every page has: frame, style, helpers in JavaScript, and how a file is made of them."""

from align_rudder.show.page.assembly import event_data, html_page

__all__ = ["event_data", "html_page"]
