// Opens pages of runs, files or addresses, in Chromium: node e2e/pages.mjs SCREENSHOTS PAGE…, with puppeteer-core,
// @sparticuz/chromium and axe-core in $NODE_FOLDER/node_modules. It fails where a page has an error, asks
// another host, is wider than its window, draws no chart of one of its tables, or where axe finds something.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";

const require = createRequire(resolve(process.env.NODE_FOLDER, "package.json"));
const load = async (name) => (await import(require.resolve(name))).default;
const chromium = await load("@sparticuz/chromium"), puppeteer = await load("puppeteer-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const [shots, ...pages] = process.argv.slice(2);

const browser = await puppeteer.launch({
  args: [...chromium.args, "--lang=en-US"], executablePath: await chromium.executablePath(), headless: "shell",
  env: { ...process.env, LANG: "en_US.UTF-8", LC_ALL: "en_US.UTF-8", LANGUAGE: "en_US" },
});
let failed = 0;
for (const file of pages) {
  for (const [width, scheme, media] of [[1200, "light", "screen"], [360, "dark", "screen"], [800, "light", "print"]]) {
    const page = await browser.newPage();
    const wrong = [];
    page.on("pageerror", (e) => wrong.push(e.message));
    page.on("console", (m) => { if (m.type() === "error") wrong.push(m.text()); });
    const address = /^http:/.test(file) ? file : "file://" + resolve(file);
    page.on("request", (r) => { if (!r.url().startsWith(address) && !r.url().startsWith("data:")) wrong.push(`asks ${r.url()}`); });
    await page.emulateMediaType(media);
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await page.setViewport({ width, height: 900 });
    await page.goto(address, { waitUntil: "load" });
    if (address === file) { // its events come once a second
      const before = await page.evaluate(() => document.getElementById("main").textContent);
      await page.waitForFunction((text) => document.getElementById("main").textContent !== text, { timeout: 15000 }, before).catch(() => wrong.push("it did not change in 15 seconds"));
    }
    if (media === "print") await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    const seen = await page.evaluate(() => ({
      wide: document.documentElement.scrollWidth,
      figures: document.querySelectorAll("figure.chart").length,
      drawn: [...document.querySelectorAll("figure.chart canvas")].filter((c) => {
        const pixels = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
        return pixels.some((x) => x !== 0);
      }).length,
      dark: getComputedStyle(document.body).backgroundColor !== "rgb(255, 255, 255)",
      reachable: [...document.querySelectorAll("summary, a, .wide")].every((e) => e.tabIndex >= 0),
    }));
    if (seen.dark !== (scheme === "dark")) wrong.push(`its colours are not ${scheme}`);
    if (media === "screen" && seen.wide > width) wrong.push(`${seen.wide} pixels wide in ${width}`);
    if (seen.figures !== seen.drawn) wrong.push(`${seen.drawn} of ${seen.figures} charts have something drawn`);
    if (!seen.reachable) wrong.push("a part cannot be reached with the keyboard");
    await page.evaluate(axe);
    for (const v of (await page.evaluate(() => globalThis.axe.run())).violations) wrong.push(`axe, ${v.impact}: ${v.help}: ${v.nodes[0].html}`);
    await page.screenshot({ path: `${shots}/${address === file ? "running" : `${basename(dirname(resolve(file)))}-${basename(file, ".html")}`}-${width}-${media}.png`, fullPage: true });
    console.log(`${file}, ${width} pixels, ${scheme}, ${media}: ${seen.drawn} charts${wrong.map((w) => "\n  " + w).join("")}`);
    failed += wrong.length;
    await page.close();
  }
}
await browser.close();
process.exit(failed ? 1 : 0);
