// The list of runs: one is selected, and any number is checked for the chart.

import {short} from "./chart.js";
import {byId, element, replace} from "./elements.js";

const NUM_COLORS = 8;
const FILTER_FROM = 8;  // Number of runs.

export class RunList {
  // `changed` is called after the user has selected or checked a run.
  constructor(changed) {
    this.runs = {};
    this.selected = null;
    this.chosen = false;  // Whether the user has selected a run.
    this.colors = new Map();  // Indices of the colors of the checked runs.
    this.items = new Map();
    this.changed = changed;
    byId("filter").addEventListener("input", () => this.filter());
  }

  checked() {
    return [...this.colors.keys()].filter(run => this.runs[run]);
  }

  // Runs whose rows are needed.
  shown() {
    return [...new Set([...this.checked(), this.selected])].filter(run => this.runs[run]);
  }

  color(run) {
    return `var(--c${this.colors.get(run) % NUM_COLORS})`;
  }

  show(runs) {
    this.runs = runs;
    const names = Object.keys(runs).reverse();  // The newest run first.
    const running = names.find(name => runs[name].state === "running");
    if (running && !this.chosen) this.select(running);
    else if (names.length && !runs[this.selected]) this.select(names[0]);
    byId("filter").hidden = names.length < FILTER_FROM;
    for (const name of names) {
      if (!this.items.has(name)) this.items.set(name, this.item(name));
      this.update(name);
    }
    const items = names.map(name => this.items.get(name).node);
    if (items.some((node, index) => node !== byId("runs").children[index])
        || items.length !== byId("runs").children.length) {
      byId("runs").replaceChildren(...items);
    }
    this.filter();
  }

  select(run) {
    this.selected = run;
    this.check(run, true);
  }

  check(run, on) {
    if (!on) this.colors.delete(run);
    else if (!this.colors.has(run)) {
      const used = [...this.colors.values()];
      let color = 0;
      while (used.includes(color)) color += 1;
      this.colors.set(run, color);
    }
  }

  item(name) {
    const checkbox = element("input", {
      type: "checkbox", "aria-label": `Show the curve of ${this.runs[name].name}`});
    const radio = element("input", {type: "radio", name: "run"});
    const title = element("span", {class: "name"}), hint = element("span", {class: "hint"});
    checkbox.addEventListener("change", () => {
      this.check(name, checkbox.checked);
      this.changed();
    });
    radio.addEventListener("change", () => {
      this.chosen = true;
      this.select(name);
      this.changed();
    });
    return {node: element("li", {}, checkbox, element("label", {}, radio, title, hint)),
      checkbox, radio, title, hint};
  }

  update(name) {
    const {node, checkbox, radio, title, hint} = this.items.get(name), run = this.runs[name];
    const selected = name === this.selected;
    node.classList.toggle("selected", selected);
    node.style.setProperty("--color", this.colors.has(name) ? this.color(name) : "");
    radio.checked = selected;
    checkbox.checked = this.colors.has(name);
    checkbox.tabIndex = selected ? 0 : -1;  // Many runs then have few tab stops.
    title.textContent = run.name;
    const share = run.steps ? ` ${Math.floor(100 * Math.min(1, run.step / run.steps))} %` : "";
    replace(hint,
      element("span", {class: run.state}, run.state + (run.state === "finished" ? "" : share)),
      element("span", {}, run.return === null ? "" : `return ${short(run.return)}`));
  }

  filter() {
    const text = byId("filter").value.toLowerCase();
    for (const [name, {node}] of this.items) node.hidden = !name.toLowerCase().includes(text);
  }
}
