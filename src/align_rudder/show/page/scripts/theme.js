// Light or dark: as the system says, until the reader chooses. What was drawn is drawn anew.
function nameTheme() {
  const dark = isDark();
  $("theme").textContent = dark ? "Light" : "Dark";
  $("theme").setAttribute("aria-pressed", String(dark));
  $("theme").setAttribute("aria-label", dark ? "Switch to light colours" : "Switch to dark colours");
}

function setTheme(name) {
  theme.theme = name;
  nameTheme();
  for (const redraw of redraws) redraw();
}

let chosen = false;
$("theme").addEventListener("click", () => {
  chosen = true;
  setTheme(isDark() ? "light" : "dark");
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
  if (!chosen) setTheme(event.matches ? "dark" : "light");
});
let resizing = 0;
addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => { for (const redraw of redraws) redraw(); }, 80);
});
nameTheme();
