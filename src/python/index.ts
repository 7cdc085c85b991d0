/**
 * Python's values and JSON in JavaScript.
 *
 * @module
 */
export { parsePythonJson, type PythonJsonOptions } from "./json/json-parse.ts";
export { stringifyPythonJson, type PythonDumpsOptions } from "./json/json-stringify.ts";
export {
  toPlainJson,
  toPyValue,
  type PlainJson,
  type PyDict,
  type PyList,
  type PyValue,
} from "./value.ts";
