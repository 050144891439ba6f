// Sets light or dark before the first paint. Runs at once, so it is no module.
"use strict";
{
  const kept = localStorage.getItem("queueber-theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
}
