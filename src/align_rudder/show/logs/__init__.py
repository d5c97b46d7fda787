"""The page of a log: why runs fail, in one HTML file."""

from align_rudder.show.logs.page import page, page_data, write_page

__all__ = ["page", "page_data", "write_page"]
