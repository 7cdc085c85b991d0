import { stringifyPythonJson } from "../../packages/python-values/src/json/json-stringify.ts";
import type { PyDict, PyValue } from "../../packages/python-values/src/value.ts";
import { isPyDict, isPyList } from "../../packages/python-values/src/value.ts";
import type { BoundTemplate } from "./bound-template.ts";
import { assistantMessage, toolMessage } from "./capability/probe-messages.ts";
import { createProber } from "./capability/prober.ts";

/**
 * Returns the template itself, or an adapter that passes call arguments as JSON text if the template refuses
 * dictionaries (DeepSeek V3 concatenates them with a string).
 */
export function adaptCallArguments(template: BoundTemplate): BoundTemplate {
  const call = { id: "call00001", name: "find_parcel", arguments: { parcel_id: "1" } };
  const { opening, show } = createProber(template);
  const messages = [
    ...opening,
    assistantMessage({ content: "", calls: [call] }),
    toolMessage(call, "in transit"),
  ];
  if (show(messages, true) !== undefined) return template;
  const adapted = withTextArguments(template);
  return createProber(adapted).show(messages, true) === undefined ? template : adapted;
}

function withTextArguments(template: BoundTemplate): BoundTemplate {
  return {
    ...template,
    render: (conversation) =>
      template.render({ ...conversation, messages: conversation.messages.map(spellArguments) }),
    with: (variables, now) => withTextArguments(template.with(variables, now)),
  };
}

function spellArguments(message: PyDict): PyDict {
  const calls = message.get("tool_calls");
  return isPyList(calls) ? new Map([...message, ["tool_calls", calls.map(spellCall)]]) : message;
}

function spellCall(call: PyValue): PyValue {
  const body = isPyDict(call) ? call.get("function") : undefined;
  const values = isPyDict(body) ? body.get("arguments") : undefined;
  if (!isPyDict(call) || !isPyDict(body) || !isPyDict(values)) return call;
  const text = stringifyPythonJson(values, { ensureAscii: false });
  return new Map([...call, ["function", new Map([...body, ["arguments", text]])]]);
}
