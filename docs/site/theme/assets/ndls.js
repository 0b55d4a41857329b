// What the theme leaves out for keyboards and screen readers: a name for the search, and focus for what scrolls. The theme
// wraps tables when a page is there, and takes focus from code that is not in view yet.
document.querySelector(".md-search[role=dialog]")?.setAttribute("aria-label", "Search");
const focus = () => {
  for (const box of document.querySelectorAll("pre > code, .md-typeset__scrollwrap, .md-typeset__table, p:has(> img)")) {
    if (box.scrollWidth > box.clientWidth && box.tabIndex < 0) box.tabIndex = 0;
  }
};
new MutationObserver(focus).observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ["tabindex"] });
addEventListener("resize", focus);
focus();
