import {
  isPyDict,
  isPyList,
  type PyDict,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import { toolParameters } from "../../tool-definition.ts";
import type { EngineResult } from "../../grammar.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { forwardsUnknown } from "../../sglang/base-json.ts";
import type { CompatCall } from "../../tool-call-parser.ts";
import { coerceCalls } from "./coerce-arguments.ts";
import type { ResponseTemplate, TemplateField } from "./response-template.ts";
import { applyTransform } from "./transform.ts";
import { typeProperties } from "./typed-parameters.ts";
import { walkRegions, type Region, type Walk } from "./walk-regions.ts";
import { writeJson } from "../../shared/json/write-json.ts";

/** The field for the text outside the calls. */
const passing: TemplateField = {
  name: "normal",
  read: (text) => text,
  transformEach: false,
  isJson: false,
};

/**
 * Walks through the regions that SGLang searches for calls: the complete turn, reasoning included.
 */
export function walkCalls(text: string, { toolCalls, startLiterals }: ResponseTemplate): Walk {
  const calls = toolCalls === undefined ? [] : [toolCalls];
  return walkRegions(text, { fields: [passing, ...calls], startLiterals });
}

/**
 * SGLang's tool-call detector for response templates, if no grammar constrains the text.
 *
 * **Source:** sgl-project/sglang 0.5.23, `python/sglang/srt/parser/response_template.py`.
 */
export function detectTemplateCalls(
  text: string,
  template: ResponseTemplate,
  context: ParseContext,
): EngineResult {
  const walk = walkCalls(text, template);
  const calls: CompatCall[] = [];
  const normal: string[] = [];
  for (const region of walk.regions) {
    if (region.field === passing) normal.push(region.body);
    else {
      for (const { name, argumentsText } of readRegion(region, walk.text, context) ?? []) {
        if (!context.toolPositions.has(name) && !forwardsUnknown(context)) continue;
        calls.push({ name, argumentsText, toolIndex: calls.length });
      }
    }
  }
  return { normalText: normal.join(""), calls };
}

/** A call in a region. */
export interface RegionCall {
  readonly name: string;
  readonly argumentsText: string;
}

/** The well-formed calls of a region; `undefined` if the region cannot be read or was cut off. */
export function readRegion(
  region: Region,
  text: string,
  context: ParseContext,
): readonly RegionCall[] | undefined {
  const value = isCutOff(region, text)
    ? undefined
    : catchPython(() => valueOf(region, context), "KeyError", "TypeError", "ValueError");
  if (value === undefined) return undefined;
  const values = isPyList(value) ? value : [value];
  return values.flatMap((each) => {
    const call = isPyDict(each) ? each.get("function") : undefined;
    const name = isPyDict(call) ? call.get("name") : undefined;
    const given = isPyDict(call) ? call.get("arguments") : undefined;
    if (typeof name !== "string" || given === undefined) return [];
    const argumentsText = typeof given === "string" ? given : writeJson(given);
    return [{ name, argumentsText }];
  });
}

/** True if the text ends before the region's closing. */
function isCutOff({ field, closeStart }: Region, text: string): boolean {
  if (field.close === undefined || closeStart < text.length) return false;
  return field.close.search(text, text.length) === undefined;
}

function valueOf({ field, body, captures }: Region, context: ParseContext): PyValue {
  const content = field.read(body);
  const scope = new Map<string, PyValue>(captures);
  const { transform } = field;
  const coercion = {
    dialect: "sglang",
    isJson: field.isJson,
    propertiesOf: (name: string) => propertiesOf(name, context),
  } as const;
  if (transform === undefined) return coerceCalls(content, coercion);
  if (!field.transformEach) {
    return coerceCalls(applyTransform(transform, scope.set("content", content)), coercion);
  }
  // A member that does not fit is dropped alone.
  return (isPyList(content) ? content : []).flatMap((member) => {
    if (!isPyDict(member)) return [];
    const inner = new Map([...scope, ...member]);
    const call = catchPython(() => applyTransform(transform, inner), "KeyError", "ValueError");
    return call === undefined ? [] : [coerceCalls(call, coercion)];
  });
}

function propertiesOf(name: string, { tools }: ParseContext): PyDict | undefined {
  const tool = tools.findLast((each) => each.name === name);
  const parameters = tool === undefined ? undefined : toolParameters(tool);
  return isPyDict(parameters) ? typeProperties(parameters) : undefined;
}
