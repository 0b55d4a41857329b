// Opens reports of runs in Chromium: node e2e/pages.mjs SCREENSHOTS PAGE…. It fails where a page has an error, asks
// another host, is wider than its window, draws no chart of one of its tables, or where axe finds something.
import { basename, dirname, resolve } from "node:path";
import { launch, look, open, tell } from "./browser.mjs";

const [shots, ...pages] = process.argv.slice(2);
const browser = await launch();
let failed = 0;
for (const file of pages) {
  for (const [width, scheme, media] of [[1200, "light", "screen"], [360, "dark", "screen"], [800, "dark", "print"]]) {
    const view = { width, scheme, media };
    const opened = await open(browser, "file://" + resolve(file), view);
    const charts = await look(opened, view, `${shots}/${basename(dirname(resolve(file)))}-${basename(file, ".html")}-${width}-${media}.png`);
    failed += tell(`${file}, ${width} pixels, ${scheme}, ${media}: ${charts} charts`, opened.wrong);
    await opened.page.close();
  }
}
await browser.close();
process.exit(failed ? 1 : 0);
