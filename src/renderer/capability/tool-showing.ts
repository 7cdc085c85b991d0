import { isPyDict, type PyValue } from "../../../packages/python-values/src/value.ts";
import type { BoundTemplate, TemplateConversation } from "../bound-template.ts";
import { tryRender } from "../bound-template.ts";
import { chooseNonce } from "../delta/environment-delta.ts";
import { missingTool } from "./missing-tool.ts";
import { assistantMessage, toolMessage, userMessage } from "./probe-messages.ts";
import type { Prober } from "./prober.ts";

/** The conversations in which a template prints the tools that it is rendered with. */
export type ToolShowing = "always" | "never" | "sometimes";

/** Measures the conversations in which a template prints its tools. */
export function measureToolShowing({ opening, tools, show }: Prober): ToolShowing {
  const call = { id: "call00001", name: "find_parcel", arguments: { parcel_id: "1" } };
  const acting = [
    assistantMessage({ content: "", calls: [call] }),
    toolMessage(call, "in transit"),
  ];
  const said = [assistantMessage({ content: "On its way." }), userMessage("Thanks!")];
  const question = opening.slice(-1);
  const conversations = [
    opening,
    question,
    [...opening, ...acting],
    [...opening, ...said],
    [...opening, ...acting, ...said],
  ];
  const shown = conversations.flatMap((messages) => {
    const prompt = show(messages, true);
    return prompt === undefined ? [] : [missingTool(prompt, withoutFirst(tools)) === undefined];
  });
  if (tools === null || new Set(shown).size !== 1) return "sometimes";
  return shown[0] === true ? "always" : "never";
}

/** The tools that the probe conversations do not call, so that only definitions contain their names. */
function withoutFirst(tools: Prober["tools"]): readonly PyValue[] {
  return (tools ?? []).slice(1);
}

/**
 * Returns the name of the first tool that a template does not print in a conversation, or `undefined` if it prints
 * all. A message that contains a tool's name shows no tool. So for a template that prints tools in some conversations
 * only, renders the conversation again, with other names.
 */
export function hiddenTool(
  text: string,
  { messages, tools, addGenerationPrompt }: TemplateConversation,
  { template, showing }: { readonly template: BoundTemplate; readonly showing: ToolShowing },
): string | undefined {
  const missing = missingTool(text, tools);
  if (missing !== undefined || tools === null || showing === "always") return missing;
  if (showing === "never") return missingTool("", tools);
  const nonce = chooseNonce([messages, tools]);
  const renamed = tools.map((tool, index) => rename(tool, `${nonce}${index}z`));
  const probe = tryRender(template, { messages, tools: renamed, addGenerationPrompt });
  const hidden = probe === undefined ? undefined : missingTool(probe, renamed);
  if (hidden === undefined) return undefined;
  return missingTool("", tools.slice(Number(hidden.slice(nonce.length, -1))));
}

function rename(tool: PyValue, name: string): PyValue {
  const about = isPyDict(tool) ? tool.get("function") : undefined;
  if (!isPyDict(tool) || !isPyDict(about) || !about.has("name")) return tool;
  const renamed = new Map([...about, ["name", name] as const]);
  return new Map([...tool, ["function", renamed] as const]);
}
