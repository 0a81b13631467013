// Checks workflows and actions against GitHub's published schemas, which are part of its parser:
//
//   node check.mjs workflow|action FILE
//
// It prints each error and exits with 1 if there is one.
import { readFileSync } from 'node:fs'
import { register } from 'node:module'

// The package imports its schemas without saying that they are JSON, as only bundlers allow.
const load = `export const load = (url, context, next) =>
  next(url, url.endsWith('.json') ? { ...context, importAttributes: { type: 'json' } } : context)`
register(`data:text/javascript,${encodeURIComponent(load)}`)
const { NoOperationTraceWriter, parseWorkflow } = await import('@actions/workflow-parser')
const { parseAction } = await import('@actions/workflow-parser/actions/action-parser')

const [kind, name] = process.argv.slice(2)
const parse = { workflow: parseWorkflow, action: parseAction }[kind]
const { context } = parse({ name, content: readFileSync(name, 'utf8') }, new NoOperationTraceWriter())
const errors = context.errors.getErrors()
for (const error of errors) console.log(error.message)
process.exit(errors.length > 0 ? 1 : 0)
