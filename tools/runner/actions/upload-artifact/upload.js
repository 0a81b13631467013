const fs = require('node:fs')
const path = require('node:path')
const { INPUT_NAME: name, INPUT_PATH: folder, STANDIN: standin } = process.env
if (/["<>|*?\r\n\\/:]/.test(name)) throw new Error(`the artifact name ${name} has a forbidden character`)
const to = path.join(standin, 'artifacts', name)
if (fs.existsSync(to)) throw new Error(`an artifact with this name already exists on the workflow run: ${name}`)
if (!fs.existsSync(folder)) console.log(`::warning::No files were found with the provided path: ${folder}`)
else fs.cpSync(folder, to, { recursive: true })
