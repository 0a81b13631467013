// The limits are those of GitHub's page "SARIF support for code scanning": 10 MB compressed, and
// 20 runs. Code scanning shows a result only with a message, and a file of the repository.
const fs = require('node:fs')
const path = require('node:path')
const zlib = require('node:zlib')
const { INPUT_SARIF_FILE: file, STANDIN: standin, STANDIN_NO_CODE_SCANNING: off } = process.env
if (off) throw new Error('Resource not accessible by integration')
const text = fs.readFileSync(file)
const fail = reason => { throw new Error(`${file}: ${reason}`) }
if (zlib.gzipSync(text).length > 10e6) fail('over 10 MB compressed')
const sarif = JSON.parse(text)
if (sarif.version !== '2.1.0') fail(`version ${sarif.version}`)
if (!sarif.runs?.length || sarif.runs.length > 20) fail(`${sarif.runs?.length} runs`)
for (const run of sarif.runs) {
  if (!run.tool?.driver?.name) fail('a run without a tool')
  for (const result of run.results) {
    const place = result.locations?.[0]?.physicalLocation
    if (!result.message?.text) fail('a result without a message')
    if (!(place?.region?.startLine > 0)) fail('a result without a line')
    if (!fs.existsSync(place.artifactLocation.uri)) fail(`no file ${place.artifactLocation.uri} in the repository`)
  }
}
fs.mkdirSync(path.join(standin, 'sarif'), { recursive: true })
fs.copyFileSync(file, path.join(standin, 'sarif', path.basename(file)))
