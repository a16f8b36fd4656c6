// The panels about the selected run.

import {exact, short} from "./chart.js";
import {byId, element, replace} from "./elements.js";

const NUM_COLORS = 8;
const PARTS = ["stepping", "crossing", "inference", "exchange", "learning", "evaluation",
  "compiling", "rest"];
const color = index => `var(--c${index % NUM_COLORS})`;

function duration(seconds) {
  const whole = Math.round(seconds), pad = number => String(number).padStart(2, "0");
  return `${Math.floor(whole / 3600)}:${pad(Math.floor(whole / 60) % 60)}:${pad(whole % 60)}`;
}

export function showFacts(run, rows, program) {
  byId("run-name").textContent = run?.name ?? "No run yet";
  byId("film-button").hidden = !run;
  byId("stop-button").hidden = run?.state !== "running";
  if (!run) return;
  byId("state").textContent = run.state === "elsewhere" ? `locked by ${run.host}` : run.state;
  byId("state").className = `state ${run.state}`;
  byId("progress").value = run.steps ? run.step / run.steps : 0;
  const train = rows.findLast(row => row.phase === "train");
  const scores = rows.filter(row => row.phase === "eval" && row.return_mean !== null)
    .map(row => row.return_mean);
  const facts = {
    "Task": run.task,
    "Steps": `${Intl.NumberFormat("en").format(run.step)} of ${short(run.steps)}`,
    "Time": duration(run.seconds),
    "Time left": run.seconds_left === null ? "" : duration(run.seconds_left),
    "Speed": train?.steps_per_second ? `${exact(train.steps_per_second)} steps/s` : "",
    "Last evaluation": scores.length ? exact(scores.at(-1)) : "",
    "Best evaluation": scores.length ? exact(scores.reduce((a, b) => Math.max(a, b))) : "",
    "Resume": run.state === "stopped" ? `${program} train ${quoted(run.path)}` : "",
  };
  replace(byId("facts"), ...Object.entries(facts).filter(([, value]) => value).map(
    ([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {},
      name === "Resume" ? element("code", {}, value) : value))));
}

// Returns a path as a word of a shell command.
function quoted(path) {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

// Equal texts are not set again, because screen readers would repeat them.
export function showText(id, ...texts) {
  const text = texts.filter(Boolean).join("\n");
  if (byId(id).textContent !== text) byId(id).textContent = text;
}

export function rewardParts(rows) {
  const train = rows.filter(row => row.phase === "train"), prefix = "reward_parts/";
  const names = [...new Set(train.flatMap(row => Object.keys(row)))].filter(
    name => name.startsWith(prefix));
  return names.sort().map((name, index) => ({
    label: name.slice(prefix.length),
    color: color(index),
    points: train.filter(row => typeof row[name] === "number").map(row => [row.step, row[name]]),
  }));
}

export function showFilm(run, {film, film_version: version, film_process: process}) {
  const source = film && `film?${new URLSearchParams({run, file: film, version})}`;
  const video = byId("film").querySelector("video");
  if (video?.dataset.source !== (source ?? undefined) || !byId("film").firstChild) {
    byId("film").replaceChildren(...source
      ? [element("video", {src: source, "data-source": source, controls: true, loop: true,
        muted: true, playsInline: true, preload: "auto", "aria-label": `Film ${film}`}),
        element("p", {class: "hint"}, film)]
      : [element("p", {class: "hint"},
        "No film yet. “Film this episode” films the newest recorded episode of training.")]);
  }
  byId("film-button").disabled = process?.state === "rendering";
  byId("film-button").textContent = process?.state === "rendering"
    ? "Filming …" : "Film this episode";
}

export function showTime(rows, period) {
  const train = rows.filter(row => row.phase === "train" && "stepping_share" in row);
  const used = period === "newest" ? train.slice(-1) : train;
  const spans = used.map((row, index) => period === "newest"
    ? 1 : row.seconds - (used[index - 1]?.seconds ?? 0));
  const total = spans.reduce((a, b) => a + b, 0);
  const shares = PARTS.map((part, index) => ({part, color: color(index), share: used.reduce(
    (sum, row, at) => sum + spans[at] * (row[`${part}_share`] || 0), 0) / total}))
    .filter(({share}) => share >= 0.005);
  if (!shares.length) {
    replace(byId("time"), element("p", {class: "hint"}, "No report yet."));
    return;
  }
  replace(byId("time"),
    element("div", {class: "bar", "aria-hidden": "true"}, ...shares.map(({color, share}) =>
      element("span", {style: {background: color, width: `${100 * share}%`}}))),
    element("ul", {class: "legend"}, ...shares.map(({part, color, share}) => element("li", {},
      element("span", {class: "swatch", style: {background: color}}), `${part} `,
      element("b", {}, `${Math.round(100 * share)} %`)))));
}

export function showWarnings(rows) {
  const warnings = rows.flatMap(row => (row.warnings || []).map(text => ({text, step: row.step})));
  replace(byId("warnings"), ...warnings.length
    ? warnings.reverse().map(({text, step}) => element("li", {},
      element("b", {}, `Step ${exact(step)}: `), text))
    : [element("li", {class: "hint"}, "No warnings.")]);
}
