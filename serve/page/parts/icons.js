// Small drawings for buttons; what they mean is said by the button's label.

const SVG = "http://www.w3.org/2000/svg";
const PATHS = {
  up: "M7 10v10H4V10zM7 10l4-7c1.500 0 2.500 1 2.200 2.600L12.500 9H18a2 2 0 0 1 2 2.300l-1 6.700A2.300 2.300 0 0 1 16.700 20H7",
  down: "M17 14V4h3v10zM17 14l-4 7c-1.500 0-2.500-1-2.200-2.600l.7-3.400H6a2 2 0 0 1-2-2.300L5 6a2.300 2.300 0 0 1 2.300-2H17",
  pencil: "M4 20l1-4L16.500 4.500l3 3L8 19zM14 7l3 3",
  cross: "M6 6l12 12M18 6L6 18",
  share: "M12 15V4M8 8l4-4 4 4M5 13v6h14v-6",
  save: "M12 4v11M8 11l4 4 4-4M5 15v4h14v-4",
  left: "M19 12H5M11 6l-6 6 6 6",
  right: "M5 12h14M13 6l6 6-6 6",
};

/** Return a drawing by its name. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  for (const [key, value] of Object.entries({ viewBox: "0 0 24 24", width: "18", height: "18", "aria-hidden": "true", class: "icon" })) svg.setAttribute(key, value);
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}
