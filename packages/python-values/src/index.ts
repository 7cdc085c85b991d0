/**
 * Python's values in JavaScript: JSON, numbers, text, and the operations on them.
 *
 * @module
 */

// Values and JSON.
export {
  isPyDict,
  isPyList,
  toPlainJson,
  toPyValue,
  type PlainJson,
  type PyDict,
  type PyList,
  type PyValue,
} from "./value.ts";
export { copyDict, copyValue, type MutableDict, type MutableValue } from "./mutable-value.ts";
export {
  decodePythonJsonAt,
  MAX_JSON_DEPTH,
  parsePythonJson,
  PythonJsonError,
  type PythonJsonOptions,
} from "./json/json-parse.ts";
export { stringifyPythonJson, type PythonDumpsOptions } from "./json/json-stringify.ts";

// Operations, with Python's errors.
export { contains } from "./contains.ts";
export { countOf } from "./count.ts";
export { isOrEquals, pythonEquals } from "./equals.ts";
export { getItem, keyError } from "./get-item.ts";
export { iterate, lengthOf } from "./iterate.ts";
export { lessThan } from "./less-than.ts";
export { PythonError, PythonValueError, type PythonExceptionName } from "./python-error.ts";
export { setItem } from "./set-item.ts";
export { pythonSorted } from "./sorted.ts";
export { pythonTruthy } from "./truthy.ts";
export { pythonTypeName, type PythonTypeName } from "./type-name.ts";

// Numbers.
export { absolute, add, multiply, negate, subtract, type PyNumber } from "./numbers/arithmetic.ts";
export { calculateNumbers, raiseNumber, type NumberOperator } from "./numbers/calculate-numbers.ts";
export { formatFloat } from "./numbers/float-text.ts";
export { parsePythonInt } from "./numbers/int-parse.ts";
export { formatInt, parseIntDigits } from "./numbers/int-text.ts";
export { roundHalfEven } from "./numbers/round.ts";
export { toFloat } from "./numbers/to-float.ts";
export { pythonRandomSample } from "./random-sample.ts";

// Text.
export { compareCodePoints } from "./text/compare-code-points.ts";
export { unescapeHtml } from "./text/html-unescape.ts";
export { isPrintable } from "./text/is-printable.ts";
export { pythonLower } from "./text/lower.ts";
export { pythonRepr, reprString } from "./text/repr.ts";
export { pythonSplit } from "./text/split.ts";
export { pythonStr } from "./text/str.ts";
export { pythonLstrip, pythonRstrip, pythonStrip } from "./text/strip.ts";
export { isPythonSpace, pythonSpaces } from "./text/white-space.ts";
