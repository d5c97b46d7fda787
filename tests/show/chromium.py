"""Headless Chromium for tests of pages."""

import shutil

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
NEEDED = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None, reason="Chromium and its driver are not installed"
    ),
]
FLAGS = (
    "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking "
    "disable-component-update disable-sync window-size=1280,900"
)


def started(folder):
    """Return a driver of a browser that logs its requests and errors."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in FLAGS.split():
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={folder}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))


def fresh(browser, width=1280, scheme="light"):
    """Empty the browser and its logs; pages opened next are so wide and light or dark."""
    browser.get("about:blank")
    media = {"media": "", "features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get_log("browser")
    browser.get_log("performance")


def at(browser, name):
    """Return the element of an id."""
    return browser.find_element(By.ID, name)


def hidden_sideways(browser, *selectors):
    """Return what of the elements cannot be seen without scrolling sideways, in pixels."""
    return browser.execute_script(
        "return arguments[0].map((s) => [...document.querySelectorAll(s)].map("
        "(e) => e.scrollWidth - e.clientWidth)).flat()",
        selectors,
    )
