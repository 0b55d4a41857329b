// Opens the page of runs that work in Chromium: node e2e/running.mjs FOLDER NDLS. One run loses a worker process and
// becomes complete, one fails, since files that it needs are removed. It fails where the page does not say so, and for
// what e2e/pages.mjs looks at.
import { execSync, spawn } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { launch, look, open, tell } from "./browser.mjs";

const [folder, ndls] = process.argv.slice(2);
const browser = await launch();
let failed = 0;

// Starts a run, and returns the address of its page once it has one.
function start(name, ...options) {
  const run = `${folder}/${name}`;
  const process = spawn(ndls, ["run", "--run", run, "--memory", "1GiB", "--http", "127.0.0.1:0", ...options], { stdio: ["ignore", "ignore", "pipe"] });
  const ended = new Promise((done) => process.on("close", done));
  return new Promise((found, lost) => {
    let text = "";
    process.stderr.on("data", (data) => {
      text += data;
      const at = text.match(/at=(http:\/\/[0-9.:]+\/)/);
      if (at) found({ run, process, ended, address: at[1] });
    });
    ended.then(() => lost(new Error(text)));
  });
}

async function until(page, wrong, what) {
  await page.waitForFunction((text) => document.body.textContent.includes(text), { timeout: 60000 }, what).catch(() => wrong.push(`it did not say “${what}” in a minute`));
}

const light = { width: 1200, scheme: "light", media: "screen" }, dark = { width: 360, scheme: "dark", media: "screen" };
const graph = ["--dataset", "synthetic:nodes=100000,edges=1000000,features=128,classes=8,seed=1", "--epochs", "20", "--runs", "2"];
{
  const { run, process, ended, address } = await start("killed", ...graph, "--workers", "2", "--epsilon", "0.001");
  for (const view of [light, dark]) {
    const opened = await open(browser, address, view);
    const { page, wrong } = opened;
    if (view === light) {
      await until(page, wrong, "running: smooth");
      await look(opened, view, `${folder}/running-${view.width}.png`);
      const workers = execSync(`pgrep -P ${process.pid}`).toString().split("\n");
      execSync(`kill -9 ${workers[0]}`);
    }
    await until(page, wrong, "lost or failed");
    await look(opened, view, `${folder}/killed-${view.width}.png`);
    if (view === dark) {
      await until(page, wrong, "complete");
      await until(page, wrong, "does not answer");
      opened.wrong = wrong.filter((w) => !w.includes("ERR_CONNECTION_REFUSED") && !w.includes("ERR_INCOMPLETE")); // it has ended
      await look(opened, view, `${folder}/complete-${view.width}.png`);
    }
    failed += tell(`${run}, ${view.width} pixels: a worker is killed`, opened.wrong);
    await page.close();
  }
  const status = await ended;
  if (status !== 0) failed += tell(run, [`status ${status}`]);
}
{
  const { run, ended, address } = await start("failed", ...graph, "--epsilon", "1e-5", "--kmax", "400");
  const opened = await open(browser, address, light);
  const { page, wrong } = opened;
  await until(page, wrong, "running: lsi");
  for (const file of readdirSync(`${run}/graph/features`)) rmSync(`${run}/graph/features/${file}`);
  await until(page, wrong, "smooth failed");
  await until(page, wrong, "does not answer");
  opened.wrong = wrong.filter((w) => !w.includes("ERR_CONNECTION_REFUSED") && !w.includes("ERR_INCOMPLETE"));
  await look(opened, light, `${folder}/failed-${light.width}.png`);
  failed += tell(`${run}: a stage fails`, opened.wrong);
  const status = await ended;
  if (status === 0) failed += tell(run, ["status 0"]);
}
await browser.close();
process.exit(failed ? 1 : 0);
