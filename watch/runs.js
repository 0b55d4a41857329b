"use strict";
// Shows the list anew every three seconds while somebody looks at it. What is ticked stays ticked.
(() => {
  const list = document.getElementById("list"), connection = document.getElementById("connection");
  const ticked = () => [...list.querySelectorAll("input:checked")].map((e) => e.value);
  setInterval(async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch("/list" + location.search);
      const text = await answer.text();
      connection.textContent = "";
      if (!answer.ok || text === list.dataset.last) return;
      const before = ticked(), active = document.activeElement;
      const place = list.contains(active) ? [...list.querySelectorAll("a, input, .wide")].indexOf(active) : -1;
      const left = list.querySelector(".wide")?.scrollLeft ?? 0;
      list.innerHTML = list.dataset.last = text;
      for (const e of list.querySelectorAll("input")) e.checked = before.includes(e.value);
      if (list.querySelector(".wide")) list.querySelector(".wide").scrollLeft = left;
      if (place >= 0) list.querySelectorAll("a, input, .wide")[place]?.focus({ preventScroll: true });
    } catch { connection.textContent = "ndls serve does not answer. This is the last that it said."; }
  }, 3000);
})();
