import { toolSchemas } from "./anthropic-tool-schemas.ts";
import { invalid, isAbsent, textOf, type Json } from "./read-body.ts";
import { unknownTool, type ToolCollector } from "./tool-set.ts";

/**
 * Every tool type of Messages that needs no schema: a schema for the policy if the client runs the
 * tool, `server` if a server would run it (counted or refused), `toolset` for several tools in one
 * entry (refused).
 */
export const anthropicToolTypes = {
  bash_20241022: toolSchemas.bash,
  bash_20250124: toolSchemas.bash,
  text_editor_20241022: toolSchemas.editorWithUndo,
  text_editor_20250124: toolSchemas.editorWithUndo,
  text_editor_20250429: toolSchemas.editor,
  text_editor_20250728: toolSchemas.editor,
  memory_20250818: toolSchemas.memory,
  computer_20241022: toolSchemas.computer(),
  computer_20250124: toolSchemas.computer({ hasScroll: true }),
  computer_20251124: toolSchemas.computer({ hasScroll: true, hasZoom: true }),
  computer_toolset_20260801: "toolset",
  browser_toolset_20260801: "toolset",
  code_execution_20250522: "server",
  code_execution_20250825: "server",
  code_execution_20260120: "server",
  code_execution_20260521: "server",
  web_search_20250305: "server",
  web_search_20260209: "server",
  web_search_20260318: "server",
  web_fetch_20250910: "server",
  web_fetch_20260209: "server",
  web_fetch_20260309: "server",
  web_fetch_20260318: "server",
  tool_search_tool_bm25_20251119: "server",
  tool_search_tool_bm25: "server",
  tool_search_tool_regex_20251119: "server",
  tool_search_tool_regex: "server",
  advisor_20260301: "server",
  mcp_toolset: "server",
} as const;

/** A tool type of Messages that needs no schema. */
export type AnthropicToolType = keyof typeof anthropicToolTypes;

/** Reads one tool of a Messages request. */
export function readMessagesTool(tool: Json, place: string, into: ToolCollector): void {
  const { type, input_schema: parameters } = tool;
  if (!isAbsent(parameters) || isAbsent(type) || type === "custom") {
    into.ignoreOthers(tool, place, ["name", "description", "input_schema"]);
    const { description } = tool;
    return into.add(
      { name: textOf(tool["name"], `${place}.name`), description, parameters },
      place,
    );
  }
  if (!isKnownType(type)) throw unknownTool(place, type, "give it an input_schema");
  const kind = anthropicToolTypes[type];
  if (kind === "server") return into.leaveOut(type);
  if (kind === "toolset") {
    const problem = `${type} names no tools; give each of its tools with an input_schema`;
    throw invalid(`${place}.type`, problem);
  }
  into.ignoreOthers(tool, place, ["name", ...kind.settings]);
  const name = textOf(tool["name"], `${place}.name`);
  const described = [
    kind.description,
    ...kind.settings.flatMap((setting) => describeSetting(setting, tool)),
  ];
  into.add({ name, description: described.join(" "), parameters: kind.parameters }, place);
}

function isKnownType(type: unknown): type is AnthropicToolType {
  return typeof type === "string" && Object.hasOwn(anthropicToolTypes, type);
}

/** Sentences for the tool's description, by the setting's name. */
const settingTexts: Readonly<Record<string, (value: unknown) => string>> = {
  display_width_px: (width) => `The screen is ${String(width)} pixels wide.`,
  display_height_px: (height) => `The screen is ${String(height)} pixels high.`,
  display_number: (number) => `It is display ${String(number)}.`,
  enable_zoom: (isOn) => (isOn === true ? "zoom may be used." : "zoom may not be used."),
  max_characters: (count) => `view shows ${String(count)} characters of a file at most.`,
};

function describeSetting(setting: string, tool: Json): readonly string[] {
  const value = tool[setting];
  return isAbsent(value) ? [] : [settingTexts[setting]!(value)];
}
