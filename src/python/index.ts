/**
 * Python's values and JSON in JavaScript.
 *
 * @module
 */
export {
  parsePythonJson,
  type PythonJsonOptions,
} from "../../packages/python-values/src/json/json-parse.ts";
export {
  stringifyPythonJson,
  type PythonDumpsOptions,
} from "../../packages/python-values/src/json/json-stringify.ts";
export {
  toPlainJson,
  toPyValue,
  type PlainJson,
  type PyDict,
  type PyList,
  type PyValue,
} from "../../packages/python-values/src/value.ts";
