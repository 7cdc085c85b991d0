import {
  isPyDict,
  isPyList,
  parsePythonJson,
  type PyDict,
  PythonError,
  pythonTruthy,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import type { ParseContext } from "../../parse-context.ts";
import { sglangParameters } from "../../sglang/sglang-parameters.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { evaluatePythonLiteral, type PythonLiteral } from "../../shared/python/python-literal.ts";

/** The parameters that a tool declares. */
export interface MiniCpmDeclaration {
  readonly properties: PyDict;
  readonly hasProperties: boolean;
  readonly required: ReadonlySet<string>;
}

/**
 * Reads the declarations of all tools.
 *
 * @throws PythonError if the properties are neither an object nor empty.
 */
export function readMiniCpmDeclarations(context: ParseContext): Map<string, MiniCpmDeclaration> {
  return new Map(
    context.tools.flatMap((tool) => {
      if (tool.name === "") return [];
      const parameters = sglangParameters(tool, context);
      const declared = isPyDict(parameters) ? parameters : undefined;
      const properties = declared?.get("properties") ?? new Map<string, PyValue>();
      if (!isPyDict(properties) && pythonTruthy(properties)) {
        throw new PythonError("AttributeError", "the properties are not an object");
      }
      const required = declared?.get("required") ?? [];
      const names = isPyList(required)
        ? required
        : [...(typeof required === "string" ? required : "")];
      const isHashable = names.every((name) => !isPyList(name) && !isPyDict(name));
      const known = new Set(
        isHashable ? names.map((name) => (typeof name === "string" ? name : "\u0000")) : [],
      );
      return [
        [
          tool.name,
          {
            properties: isPyDict(properties) ? properties : new Map<string, PyValue>(),
            hasProperties:
              declared === undefined || !declared.has("properties") || isPyDict(properties),
            required: known,
          },
        ] as const,
      ];
    }),
  );
}

/** Reads the text as JSON or as a Python literal, or returns it unchanged. */
export function readMiniCpmLiteral(text: string): PythonLiteral {
  const raw = { value: text, isJson: true };
  const read = (): PythonLiteral => {
    const json = catchPython(() => parsePythonJson(text), "JSONDecodeError", "TypeError");
    return json === undefined ? evaluatePythonLiteral(text) : { value: json, isJson: true };
  };
  return catchPython(read, "ValueError", "SyntaxError", "TypeError") ?? raw;
}
