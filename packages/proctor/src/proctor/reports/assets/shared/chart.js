"use strict";
// On a narrow page a row of a leaderboard shows its first lane; a button shows the others. Without this script all are
// shown.
(() => {
  for (const chart of document.querySelectorAll(".chart")) {
    if (!chart.querySelector(".unfold")) continue;
    chart.classList.add("folding");
    chart.addEventListener("click", (event) => {
      const button = event.target.closest(".unfold");
      if (!button) return;
      const shown = button.closest(".sys").classList.toggle("unfolded");
      button.setAttribute("aria-expanded", String(shown));
      button.textContent = shown ? button.dataset.less : button.dataset.more;
    });
  }
})();
