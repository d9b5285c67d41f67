/* Loaded before the first paint, so that a chosen theme never flashes in the other one. */
(function () {
  var chosen = null;
  try { chosen = localStorage.getItem("carrel.theme"); } catch (error) { /* storage is closed */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
