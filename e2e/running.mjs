// Opens the page of runs that work in Chromium: node e2e/running.mjs FOLDER NDLS. One run loses a worker process, and
// becomes complete; one fails, since files that it needs are removed; one is drained through the form of its page. Then
// a coordinator with workers in processes of their own loses one, lets one end and stops, both through the form, and goes
// on to its end; another one fails. Each is looked at as it works, as it loses a worker and as it ends: light and wide,
// dark and 360 pixels wide, and on paper.
// It fails where the page does not say so, and for what e2e/pages.mjs looks at.
import { execSync, spawn } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { launch, look, open, tell } from "./browser.mjs";

const [folder, ndls] = process.argv.slice(2);
const browser = await launch();
const token = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
let failed = 0;

// Starts ndls on the run of a name; ended becomes its exit status.
function begin(verb, name, ...options) {
  const run = `${folder}/${name}`;
  const started = spawn(ndls, [verb, "--run", run, ...options], { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, NDLS_TOKEN: token } });
  return { run, process: started, ended: new Promise((done) => started.on("close", done)) };
}

// Starts a run or a coordinator, and returns the address of its page once it has one.
function start(verb, name, ...options) {
  const { run, process: started, ended } = begin(verb, name, "--http", "127.0.0.1:0", ...options);
  return new Promise((found, lost) => {
    let text = "";
    started.stderr.on("data", (data) => {
      text += data;
      const at = text.match(/at=(http:\/\/[0-9.:]+\/)/);
      if (at) found({ run, process: started, ended, address: at[1] });
    });
    ended.then(() => lost(new Error(text)));
  });
}

// Waits until the page says something; its scripts say nothing.
async function until(page, wrong, what) {
  await page.waitForFunction((text) => document.querySelector("main").textContent.includes(text), { timeout: 300000, polling: 200 }, what).catch(() => wrong.push(`it did not say “${what}” in five minutes`));
}

// Presses a button of the form, by the keyboard, and returns what the page says then.
async function press(page, act) {
  await page.evaluate(() => { document.getElementById("steered").textContent = ""; });
  await page.focus(`button[value=${act}]`);
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.getElementById("steered").textContent !== "", { timeout: 60000, polling: 100 });
  return page.evaluate(() => document.getElementById("steered").textContent);
}

// Types a token, or a worker, in place of what the field had.
async function fill(page, name, text) {
  await page.evaluate((name) => { document.querySelector(`input[name=${name}]`).value = ""; }, name);
  await page.type(`input[name=${name}]`, text);
}

// A process that has ended does not answer, which the page says.
const answered = (wrong) => wrong.filter((w) => !w.includes("ERR_CONNECTION_REFUSED") && !w.includes("ERR_INCOMPLETE"));

const views = [{ width: 1200, scheme: "light", media: "screen" }, { width: 360, scheme: "dark", media: "screen" }, { width: 800, scheme: "dark", media: "print" }];
const memory = ["--memory", "1GiB"];
const graphOf = (features) => ["--dataset", `synthetic:nodes=100000,edges=1000000,features=${features},classes=8,seed=1`, "--epochs", "20", "--runs", "2"];
const graph = graphOf(128);

// All views of one page.
const openAll = async (address) => Promise.all(views.map(async (view) => ({ view, opened: await open(browser, address, view) })));
async function lookAll(all, name) {
  for (const { view, opened } of all) await look(opened, view, `${folder}/${name}-${view.width}-${view.media}.png`);
}
async function end(all, what) {
  for (const { view, opened } of all) {
    failed += tell(`${what}, ${view.width} pixels, ${view.scheme}, ${view.media}`, opened.wrong);
    await opened.page.close();
  }
}
async function untilAll(all, what) {
  for (const { opened } of all) await until(opened.page, opened.wrong, what);
}

{
  const { run, process: started, ended, address } = await start("run", "killed", ...memory, ...graphOf(512), "--workers", "2", "--epsilon", "0.001", "--tolerance", "0");
  const all = await openAll(address);
  const { page, wrong } = all[0].opened;
  // What a user has opened, and where the focus is, stays as the page changes.
  await page.waitForSelector("#settled", { timeout: 300000 });
  await page.focus("#settled summary");
  await page.keyboard.press("Enter");
  await until(page, wrong, "rows read for that");
  await page.waitForFunction(() => document.querySelector("svg.chart"), { timeout: 300000, polling: 200 }).catch(() => wrong.push("no chart of K came"));
  if (!(await page.evaluate(() => document.querySelector("#settled")?.open && document.activeElement.tagName === "SUMMARY"))) wrong.push("what was opened with the keyboard did not stay open");
  await lookAll(all, "lsi");
  await untilAll(all, "smooth: stage");
  await lookAll(all, "running");
  const workers = execSync(`pgrep -P ${started.pid}`).toString().split("\n");
  execSync(`kill -9 ${workers[0]}`);
  await untilAll(all, "lost or failed");
  await lookAll(all, "killed");
  await untilAll(all, "does not answer");
  for (const x of all) x.opened.wrong = answered(x.opened.wrong);
  for (const { opened: { page, wrong } } of all) {
    const heading = await page.evaluate(() => document.querySelector("h1").textContent);
    if (heading !== "complete") wrong.push(`the run is complete, and the page says “${heading}”`);
  }
  await lookAll(all, "complete");
  await end(all, `${run}: a worker is killed`);
  const status = await ended;
  if (status !== 0) failed += tell(run, [`status ${status}`]);
}
{
  const { run, ended, address } = await start("run", "failed", ...memory, ...graph, "--epsilon", "1e-5", "--kmax", "400");
  const all = await openAll(address);
  await untilAll(all, "lsi: stage");
  for (const file of readdirSync(`${run}/graph/features`)) rmSync(`${run}/graph/features/${file}`);
  await untilAll(all, "smooth failed");
  await untilAll(all, "does not answer");
  for (const x of all) x.opened.wrong = answered(x.opened.wrong);
  await lookAll(all, "failed");
  await end(all, `${run}: a stage fails`);
  const status = await ended;
  if (status === 0) failed += tell(run, ["status 0"]);
}
{
  const { run, ended, address } = await start("run", "drained", ...memory, ...graph, "--epsilon", "1e-3");
  const view = views[0], opened = await open(browser, address, view);
  const { page, wrong } = opened;
  await until(page, wrong, ": stage");
  await fill(page, "token", "wrong");
  const refused = await press(page, "stop");
  if (!refused.includes("must bear the token")) wrong.push(`a wrong token: ${refused}`);
  await fill(page, "token", token);
  await fill(page, "worker", await page.evaluate(() => document.querySelector("#workers option").value));
  const last = await press(page, "worker");
  if (!last.includes("last worker")) wrong.push(`the last worker: ${last}`);
  const drained = await press(page, "drain");
  if (!drained.includes("stops after the tasks")) wrong.push(`drain: ${drained}`);
  await look(opened, view, `${folder}/drained.png`);
  await until(page, wrong, "does not answer");
  opened.wrong = wrong.filter((w) => !w.includes("401") && !w.includes("409"));
  opened.wrong = answered(opened.wrong);
  failed += tell(`${run}: drained`, opened.wrong);
  const status = await ended;
  if (status !== 130) failed += tell(run, [`status ${status}`]);
}
const cluster = [...graph, "--lease", "3s", "--epsilon", "1e-5", "--kmax", "400"];
const work = (name, at) => begin("worker", name, "--memory", "512MiB", "--threads", "1", "--scratch", `${folder}/${name}-scratch-${at}`);
// The process of a worker that has a task: its name is HOST-PROCESS-RANDOM.
async function pidAtWork(address) {
  for (;;) {
    const { workers } = await (await fetch(`${address}status`)).json();
    const at = workers.find((w) => w.task);
    if (at) return Number(at.name.match(/-(\d+)-[^-]*$/)[1]);
  }
}
const names = (page) => page.evaluate(() => [...document.querySelectorAll("#workers option")].map((o) => o.value));
{
  let { run, ended, address } = await start("coordinator", "cluster", ...cluster, "--workers", "3");
  let all = await openAll(address);
  await untilAll(all, "No worker has joined; 3 must be there");
  await lookAll(all, "cluster-waiting");
  const workers = [1, 2, 3].map((at) => work("cluster", at));
  await untilAll(all, "lsi: stage");
  await lookAll(all, "cluster-running");
  const victim = await pidAtWork(address);
  process.kill(victim, "SIGKILL");
  await untilAll(all, "(gone)");
  await untilAll(all, "lost or failed");
  await lookAll(all, "cluster-killed");
  // One worker ends through the form, with status 0.
  const { page, wrong } = all[0].opened;
  await fill(page, "token", "wrong");
  const refused = await press(page, "stop");
  if (!refused.includes("must bear the token")) wrong.push(`a wrong token: ${refused}`);
  await fill(page, "token", token);
  const here = await names(page);
  if (here.length !== 2) wrong.push(`workers to choose from: ${here}`);
  await fill(page, "worker", here[0]);
  const letGo = await press(page, "worker");
  if (!letGo.includes("no further task")) wrong.push(`a worker that ends: ${letGo}`);
  const first = await Promise.race(workers.filter((w) => w.process.pid !== victim).map((w) => w.ended));
  if (first !== 0) wrong.push(`the worker that was let go has status ${first}`);
  // The others stop with the run, and the same command continues it.
  const stopped = await press(page, "stop");
  if (!stopped.includes("stop")) wrong.push(`stop: ${stopped}`);
  await untilAll(all, "does not answer");
  for (const x of all) x.opened.wrong = answered(x.opened.wrong).filter((w) => !w.includes("401"));
  await lookAll(all, "cluster-stopped");
  await end(all, `${run}: a cluster that loses a worker, lets one go, and stops`);
  const status = await ended;
  if (status !== 130) failed += tell(run, [`status ${status} after stop`]);

  ({ run, ended, address } = await start("coordinator", "cluster", ...cluster, "--workers", "1"));
  all = await openAll(address);
  const last = work("cluster", 4);
  await untilAll(all, "does not answer");
  for (const { opened } of all) {
    opened.wrong = answered(opened.wrong);
    const heading = await opened.page.evaluate(() => document.querySelector("h1").textContent);
    if (heading !== "complete") opened.wrong.push(`the run is complete, and the page says “${heading}”`);
  }
  await lookAll(all, "cluster-complete");
  await end(all, `${run}: a cluster that goes on, and is complete`);
  const statuses = [await ended, await last.ended];
  if (statuses.some((s) => s !== 0)) failed += tell(run, [`statuses ${statuses}`]);
  await Promise.all(workers.map((w) => w.ended)); // none stays behind
}
{
  const { run, ended, address } = await start("coordinator", "cluster-failed", ...graph, "--lease", "3s", "--epsilon", "1e-5", "--kmax", "400");
  const all = await openAll(address);
  const worker = work("cluster-failed", 1);
  await untilAll(all, "lsi: stage");
  for (const file of readdirSync(`${run}/graph/features`)) rmSync(`${run}/graph/features/${file}`);
  await untilAll(all, "smooth failed");
  await untilAll(all, "does not answer");
  for (const x of all) x.opened.wrong = answered(x.opened.wrong);
  await lookAll(all, "cluster-failed");
  await end(all, `${run}: a stage of a cluster fails`);
  const statuses = [await ended, await worker.ended];
  if (statuses.some((s) => s === 0)) failed += tell(run, [`statuses ${statuses}`]);
}
await browser.close();
process.exit(failed ? 1 : 0);
