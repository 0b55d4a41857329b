// Reads Parquet files of a run with hyparquet and compares them with an export:
// readers.mjs RUN EXPORTS, with hyparquet in NODE_PATH's folder.
import { readFileSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const [run, exports_] = process.argv.slice(2)
const require = createRequire(import.meta.url)
const { parquetReadObjects } = await import(pathToFileURL(require.resolve('hyparquet', { paths: [process.env.NDLS_JS] })))

const rows = async path => {
  const b = readFileSync(path)
  return parquetReadObjects({ file: b.buffer.slice(b.byteOffset, b.byteOffset + b.byteLength) })
}
const all = async dir => (await Promise.all(readdirSync(dir).map(f => rows(`${dir}/${f}`)))).flat()
const csv = name => readFileSync(`${exports_}/${name}.csv`, 'utf8').trim().split('\n').slice(1).map(l => l.split(','))
const sum = xs => xs.reduce((a, x) => a + Number(x), 0)
const check = (ok, what) => { if (!ok) { console.error(`readers.mjs: ${what}`); process.exit(1) } }

const edges = await all(`${run}/graph/edges`)
check(edges.length === 2 * csv('edges').length, 'edge shards and exported edges differ in number')
const lsi = csv('lsi')
for (const [what, k] of [['lsi', await all(`${run}/lsi`)], ['exported lsi', await rows(`${exports_}/lsi.parquet`)]]) {
  check(k.length === lsi.length && sum(k.map(r => r.k)) === sum(lsi.map(r => r[1])), `${what} differs from its csv`)
}
const nodes = await rows(`${run}/graph/nodes.parquet`)
check(sum(nodes.map(r => r.degree)) === edges.length, 'degrees do not add up to the edges')
const smoothed = await rows(`${exports_}/smoothed.parquet`)
const close = (a, b) => Math.abs(a - b) <= 1e-6 * Math.abs(b)
check(csv('smoothed').every((r, i) => r.slice(1).every((x, j) => close(smoothed[i].feature[j], Number(x)))), 'smoothed differs from its csv')
check((await rows(`${run}/catalog.parquet`)).length > 0, 'empty catalogue')
console.log(`readers.mjs: hyparquet agrees on ${edges.length} edges and ${nodes.length} nodes`)
