// Requests the runs every two seconds, and shows the selected run.

import {Chart} from "./chart.js";
import {byId} from "./elements.js";
import * as panels from "./panels.js";
import {RunList} from "./run_list.js";

const PAUSE = 2000;  // Milliseconds between two requests.

const rows = new Map();  // Rows and films of the shown runs, by run.
const list = new RunList(() => {
  notice = {};
  update();
});
const returns = new Chart(byId("return-chart"), "Return");
const parts = new Chart(byId("parts-chart"), "Reward parts");
let program = "";
let notice = {};  // Result of the last action: `message` or `error`.
let timer;

async function request(action, parameters = {}, method = "GET") {
  const url = `${action}?${new URLSearchParams(parameters)}`;
  const answer = await fetch(url, {method}).catch(() => {
    throw new Error("The server of this page has ended.");
  });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

async function readRows(run) {
  const known = rows.get(run) || {generation: -1, rows: []};
  const answer = await request(
    "run", {run, generation: known.generation, start: known.rows.length});
  answer.rows = [...known.rows.slice(0, answer.start), ...answer.rows];
  rows.set(run, answer);
}

async function update() {
  clearTimeout(timer);
  try {
    const answer = await request("runs");
    program = answer.program;
    byId("logdir").textContent = answer.logdir;
    list.show(answer.runs);
    await Promise.all(list.shown().map(readRows));
    draw();
    connected(`Updated ${new Date().toLocaleTimeString()}`);
  } catch (error) {
    connected(error.message, true);
  }
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(update, PAUSE);
}

function connected(text, lost = false) {
  byId("connection").textContent = text;
  byId("connection").classList.toggle("lost", lost);
}

function draw() {
  const summary = list.runs[list.selected], details = rows.get(list.selected);
  panels.showFacts(summary, details?.rows || [], program);
  panels.showText("message", summary?.state === "running" && notice.message);
  panels.showText("error", notice.error, summary?.error,
    details?.film_process?.state === "failed" && details.film_process.output);
  const axis = document.querySelector("[name=axis]:checked").value;
  const x = row => axis === "step" ? row.step : row.seconds / 60;
  returns.show(list.checked().flatMap(run => ["eval", "train"].map(phase => ({
    label: list.runs[run].name,
    color: list.color(run),
    dashed: phase === "train",
    points: (rows.get(run)?.rows || []).filter(row => row.phase === phase && row.return_mean !== null)
      .map(row => [x(row), row.return_mean]),
  }))), axis === "step" ? "steps" : "minutes", "The checked runs have no scores yet.");
  if (!details) return;
  parts.show(
    panels.rewardParts(details.rows), "steps", "This environment reports no reward parts.");
  panels.showFilm(list.selected, details);
  panels.showTime(details.rows, document.querySelector("[name=period]:checked").value);
  panels.showWarnings(details.rows);
}

async function act(action) {
  notice = {};
  try {
    await request(action, {run: list.selected}, "POST");
    notice = {message: action === "stop" && "The run saves a checkpoint and ends."};
  } catch (error) {
    notice = {error: error.message};
  }
  update();
}

byId("film-button").addEventListener("click", () => act("film"));
byId("stop-button").addEventListener("click", () => byId("stop-dialog").showModal());
byId("stop-dialog").addEventListener("close", event => {
  if (event.target.returnValue === "stop") act("stop");
  event.target.returnValue = "";
});
for (const input of document.querySelectorAll("[name=axis], [name=period]")) {
  input.addEventListener("change", draw);
}
document.addEventListener("visibilitychange", () => document.hidden || update());
update();
