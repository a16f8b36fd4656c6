// Draws a line chart as SVG. The pointer or the arrow keys show values.

import {element, replace} from "./elements.js";

const HEIGHT = 260, LEFT = 52, RIGHT = 12, TOP = 10, BOTTOM = 26;
const SVG = "http://www.w3.org/2000/svg";

export class Chart {
  // `name` describes the chart to screen readers.
  constructor(parent, name) {
    this.name = name;
    this.lines = [];  // {label, color, dashed, points: [[x, y], ...]}
    this.cursor = null;  // Index in `this.positions`.
    this.frame = element("div", {
      class: "chart", tabindex: 0, role: "group", "aria-roledescription": "chart"});
    this.legend = element("ul", {class: "legend"});
    this.readout = element("p", {class: "readout", role: "status"});
    parent.append(this.frame, this.readout, this.legend);
    this.frame.addEventListener("keydown", event => this.onKey(event));
    this.frame.addEventListener("pointermove", event => this.onPointer(event));
    this.frame.addEventListener("pointerleave", () => this.moveTo(null));
    this.frame.addEventListener("blur", () => this.moveTo(null));
    new ResizeObserver(() => this.draw()).observe(this.frame);
  }

  show(lines, xName, empty) {
    this.lines = lines.filter(line => line.points.length);
    this.xName = xName;
    this.empty = empty;
    this.draw();
  }

  draw() {
    const points = this.lines.flatMap(line => line.points);
    this.frame.hidden = this.legend.hidden = !points.length;
    const width = this.frame.clientWidth;
    if (!points.length || !width) {
      this.readout.textContent = points.length ? "" : this.empty;
      return;
    }
    this.positions = [...new Set(points.map(([x]) => x))].sort((a, b) => a - b);
    this.cursor = this.cursor === null ? null : Math.min(this.cursor, this.positions.length - 1);
    const svg = this.drawAxes(points, width);
    for (const line of this.lines) {
      const path = line.points.map(([x, y]) => `${this.x(x).toFixed(1)} ${this.y(y).toFixed(1)}`);
      svg.append(shape("path", {
        d: `M${path.join("L")}`, stroke: line.color, class: line.dashed ? "dashed" : ""}));
      if (line.points.length === 1) svg.append(this.dot(line, line.points[0]));
    }
    this.marks = shape("g");
    svg.append(this.marks);
    this.frame.replaceChildren(svg);
    const first = short(this.positions[0]), last = short(this.positions.at(-1));
    this.frame.setAttribute("aria-label",
      `${this.name} from ${first} to ${last} ${this.xName}. The arrow keys show values.`);
    this.drawCursor();
  }

  // Returns a new SVG element, and defines the functions `x` and `y`.
  drawAxes(points, width) {
    const end = width - RIGHT, last = extreme(points, 0, Math.max);
    const xTicks = ticks(0, last, width / 90).filter(value => value <= last);
    const yTicks = ticks(extreme(points, 1, Math.min), extreme(points, 1, Math.max), 5);
    this.x = scale(0, last || 1, LEFT, end);
    this.y = scale(yTicks[0], yTicks.at(-1), HEIGHT - BOTTOM, TOP);
    const svg = shape(
      "svg", {viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, "aria-hidden": true});
    for (const value of yTicks) {
      const y = this.y(value);
      svg.append(
        shape("line", {class: "grid", x1: LEFT, x2: end, y1: y, y2: y}),
        shape("text", {x: LEFT - 6, y: y + 4, "text-anchor": "end"}, short(value)));
    }
    for (const value of xTicks) {
      const position = {x: this.x(value), y: HEIGHT - 8, "text-anchor": "middle"};
      svg.append(shape("text", position, short(value)));
    }
    return svg;
  }

  moveTo(index) {
    this.cursor = index;
    if (this.marks) this.drawCursor();
  }

  drawCursor() {
    this.marks.replaceChildren();
    const legend = new Map();  // Lines with the same label share an entry.
    const position = this.cursor === null ? null : this.positions[this.cursor];
    if (position !== null) {
      const x = this.x(position);
      this.marks.append(
        shape("line", {class: "cursor", x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM}));
    }
    for (const line of this.lines) {
      const point = line.points.findLast(([x]) => position === null || x <= position);
      if (point && position !== null) this.marks.append(this.dot(line, point));
      const entry = legend.get(line.label) || legend.set(
        line.label, {color: line.color, values: []}).get(line.label);
      if (point) entry.values.push(exact(point[1]));
    }
    const texts = [...legend].map(([label, {values}]) => `${label} ${values.join(" / ")}`);
    replace(this.readout, ...position === null ? [] : [
      `${exact(position)} ${this.xName}`,
      element("span", {class: "spoken"}, `: ${texts.join(", ")}`)]);  // The legend shows it, too.
    this.legend.replaceChildren(...[...legend].map(([label, {color, values}]) =>
      element("li", {}, element("span", {class: "swatch", style: {background: color}}),
        `${label} `, element("b", {}, values.join(" / ")))));
  }

  dot(line, [x, y]) {
    return shape("circle", {cx: this.x(x), cy: this.y(y), r: 3.5, fill: line.color});
  }

  onKey(event) {
    const last = this.positions?.length - 1, now = this.cursor ?? last;
    const target = {
      ArrowLeft: now - (this.cursor === null ? 0 : 1), ArrowRight: now + 1,
      Home: 0, End: last, Escape: null}[event.key];
    if (target === undefined) return;
    event.preventDefault();
    this.moveTo(target === null ? null : Math.max(0, Math.min(last, target)));
  }

  onPointer(event) {
    if (!this.positions || this.frame.hidden) return;
    const x = event.clientX - this.frame.getBoundingClientRect().left;
    const distances = this.positions.map(position => Math.abs(this.x(position) - x));
    this.moveTo(distances.indexOf(distances.reduce((a, b) => Math.min(a, b))));
  }
}

// Returns a number as short text, such as "1.5M".
export function short(value) {
  const options = {notation: "compact", maximumSignificantDigits: 3};
  return new Intl.NumberFormat("en", options).format(value);
}

export function exact(value) {
  return new Intl.NumberFormat("en", Math.abs(value) >= 100
    ? {maximumFractionDigits: 0} : {maximumSignificantDigits: 3}).format(value);
}

function shape(name, attributes = {}, text = "") {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.textContent = text;
  return node;
}

function extreme(points, axis, select) {
  return points.reduce((best, point) => select(best, point[axis]), points[0][axis]);
}

function ticks(low, high, count) {
  const span = high - low || Math.abs(high) || 1;
  const raw = span / Math.max(2, count), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find(factor => factor * power >= raw) * power;
  const first = Math.floor(low / step), last = Math.max(first + 1, Math.ceil(high / step));
  return Array.from({length: last - first + 1}, (_, index) => (first + index) * step);
}

function scale(low, high, from, to) {
  return value => from + (to - from) * (value - low) / (high - low);
}
