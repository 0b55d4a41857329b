// Chromium for pages of runs: puppeteer-core, @sparticuz/chromium and axe-core are in $NODE_FOLDER/node_modules.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";

const require = createRequire(resolve(process.env.NODE_FOLDER, "package.json"));
const load = async (name) => (await import(require.resolve(name))).default;
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export async function launch() {
  const chromium = await load("@sparticuz/chromium"), puppeteer = await load("puppeteer-core");
  // One process for all pages, as the package has it for services that forbid more, renders one page at a time, and one
  // page that ends it ends all.
  const args = chromium.args.filter((arg) => arg !== "--single-process");
  return puppeteer.launch({
    args: [...args, "--lang=en-US"], executablePath: await chromium.executablePath(), headless: "shell", protocolTimeout: 600_000,
    env: { ...process.env, LANG: "en_US.UTF-8", LC_ALL: "en_US.UTF-8", LANGUAGE: "en_US" },
  });
}

// Opens an address in a window of so many pixels, dark or light, on a screen or on paper. What goes wrong from then on is
// added to the list: errors of scripts, and requests to elsewhere.
export async function open(browser, address, { width, scheme, media }) {
  const page = await browser.newPage();
  page.setDefaultNavigationTimeout(300_000);
  const wrong = [], home = address.startsWith("http") ? new URL(address).origin : address;
  page.on("pageerror", (e) => wrong.push(e.message));
  page.on("console", (m) => { if (m.type() === "error") wrong.push(m.text()); });
  page.on("request", (r) => { if (!r.url().startsWith(home) && !r.url().startsWith("data:")) wrong.push(`asks ${r.url()}`); });
  await page.evaluateOnNewDocument(() => { try { localStorage.clear(); } catch { /* a page of a file has none */ } }); // colours that a page before has stored
  // In one call: each of puppeteer's two undoes the other.
  await (await page.createCDPSession()).send("Emulation.setEmulatedMedia", { media, features: [{ name: "prefers-color-scheme", value: scheme }] });
  await page.setViewport({ width, height: 900 });
  await page.goto(address, { waitUntil: "load" });
  if (media === "print") await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  return { page, wrong };
}

// What axe finds in a page: everything, or what has one of these impacts.
export async function findings(page, impacts) {
  await page.evaluate(axe);
  // Of what is right it would otherwise list every element, megabytes for a long page.
  const violations = await page.evaluate(async () => (await globalThis.axe.run({ resultTypes: ["violations"] })).violations);
  return violations.filter((v) => !impacts || impacts.includes(v.impact)).map((v) => `axe, ${v.impact}: ${v.help}: ${v.nodes[0].html}`);
}

// Looks at a page as it is now, takes a picture, and returns how many charts it has.
export async function look({ page, wrong }, { width, scheme, media }, picture) {
  const seen = await page.evaluate(() => ({
    wide: document.documentElement.scrollWidth,
    figures: document.querySelectorAll("figure.chart").length,
    drawn: [...document.querySelectorAll("figure.chart canvas")].filter((c) => {
      const pixels = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
      return pixels.some((x) => x !== 0);
    }).length,
    printed: matchMedia("print").matches,
    dark: getComputedStyle(document.body).backgroundColor !== "rgb(255, 255, 255)",
    reachable: [...document.querySelectorAll("summary, a, .wide, button, input")].every((e) => e.tabIndex >= 0),
    // Tables that a reader needs first fit their place; others may scroll.
    cut: [...document.querySelectorAll(".wide:has(> .results, > .workers)")].filter((e) => e.scrollWidth > e.clientWidth + 1).length,
    unnamed: [...document.querySelectorAll(".wide, button, input, svg[role=img]")].filter((e) => !(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length)).length,
  }));
  if (seen.dark !== (scheme === "dark" && media === "screen")) wrong.push(`its colours are not ${scheme}`);
  if (seen.wide > width) wrong.push(`${seen.wide} pixels wide in ${width}`);
  if (seen.cut && media === "screen") wrong.push(`${seen.cut} tables are cut off`);
  if (seen.figures !== seen.drawn) wrong.push(`${seen.drawn} of ${seen.figures} charts have something drawn`);
  if (seen.printed !== (media === "print")) wrong.push(`it is not on ${media}`);
  if (seen.unnamed) wrong.push(`${seen.unnamed} parts have no name for a screen reader`);
  if (!seen.reachable) wrong.push("a part cannot be reached with the keyboard");
  wrong.push(...await findings(page));
  await page.screenshot({ path: picture, fullPage: true });
  if (media === "print") await page.pdf({ path: picture.replace(/png$/, "pdf"), format: "A4", printBackground: false });
  return seen.drawn;
}

// Prints what is wrong with something, and counts it.
export function tell(what, wrong) {
  console.log(what + wrong.map((w) => "\n  " + w).join(""));
  return wrong.length;
}
