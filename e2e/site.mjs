// Opens the pages of the documentation in Chromium: node e2e/site.mjs HTML SCREENSHOTS [PART-OF-A-NAME]…. It fails where a
// page has an error, asks another host, is wider than its window, or where axe finds something serious.
import { createServer } from "node:http";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { extname, join, relative } from "node:path";
import { findings, launch, open, tell } from "./browser.mjs";

const [root, shots, ...parts] = process.argv.slice(2);
const types = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".json": "application/json", ".png": "image/png" };
const server = createServer((request, answer) => {
  try {
    const file = join(root, decodeURIComponent(new URL(request.url, "http://localhost").pathname));
    const data = readFileSync(file);
    answer.writeHead(200, { "Content-Type": types[extname(file)] ?? "application/octet-stream" }).end(data);
  } catch { answer.writeHead(404).end(); }
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const pages = readdirSync(root, { recursive: true, withFileTypes: true })
  .filter((f) => f.name.endsWith(".html")).map((f) => relative(root, join(f.parentPath ?? f.path, f.name)))
  .filter((name) => !parts.length || parts.some((part) => name.includes(part))).sort();
mkdirSync(shots, { recursive: true });
const browser = await launch();
const views = pages.flatMap((name) => [[name, 1200, "light"], [name, 360, "dark"]]);
let failed = 0;
// Takes views until none is left. As many of these work side by side as there are processors, and none sees what the
// pages of another one have stored.
async function look() {
  const own = await browser.createBrowserContext();
  for (let view; (view = views.shift());) {
    const [name, width, scheme] = view, begun = performance.now();
    const opened = await open(own, `http://127.0.0.1:${server.address().port}/${name}`, { width, scheme, media: "screen" });
    const wide = await opened.page.evaluate(() => document.documentElement.scrollWidth);
    const dark = await opened.page.evaluate(() => document.body.dataset.mdColorScheme === "slate");
    if (dark !== (scheme === "dark")) opened.wrong.push(`its colours are not ${scheme}`);
    if (wide > width) opened.wrong.push(`${wide} pixels wide in ${width}`);
    opened.wrong.push(...await findings(opened.page, ["serious", "critical"]));
    await opened.page.screenshot({ path: `${shots}/${name.replaceAll("/", "-").replace(/\.html$/, "")}-${width}.png`, fullPage: name !== "reference/commands.html" });
    await opened.page.close();
    failed += tell(`${name}, ${width} pixels, ${scheme}: ${((performance.now() - begun) / 1000).toFixed(1)} s`, opened.wrong);
  }
}
await Promise.all(Array.from({ length: availableParallelism() }, look));
await browser.close();
server.close();
if (pages.length === 0) console.log(`there is no page in ${root}`);
process.exit(failed || !pages.length ? 1 : 0);
