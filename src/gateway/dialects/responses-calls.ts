import { actionArguments, customArguments, type ActionForm } from "../call-form.ts";
import type { ClientCall, ClientResult } from "../conversation.ts";
import { contentText } from "./content-text.ts";
import type { Recollection } from "./dialect.ts";
import { inputForm, responsesParts } from "./message-parts.ts";
import {
  givenArguments,
  invalid,
  isAbsent,
  listOf,
  objectOf,
  optionalText,
  placedArguments,
  textOf,
  type Json,
} from "./read-body.ts";
import { flatName } from "./tool-namespaces.ts";

/** Reads an item that is a call. Returns `undefined` for other items. */
export function readCallItem(item: Json, place: string): ClientCall | undefined {
  switch (item["type"]) {
    case "function_call": {
      const where = `${place}.arguments`;
      const given = placedArguments(givenArguments(textOf(item["arguments"], where)), where);
      return { id: callId(item, place), name: nameOf(item, place), ...given };
    }
    case "custom_tool_call": {
      const argumentsText = customArguments(textOf(item["input"], `${place}.input`));
      return { id: callId(item, place), name: nameOf(item, place), argumentsText };
    }
    case "local_shell_call":
      return readAction(item, {
        name: "local_shell",
        form: "local-shell",
        member: "action",
        place,
      });
    case "shell_call":
      return readAction(item, { name: "shell", form: "shell", member: "action", place });
    case "apply_patch_call": {
      const how = { name: "apply_patch", form: "apply-patch", member: "operation" } as const;
      return readAction(item, { ...how, place });
    }
    default:
      return undefined;
  }
}

/** Reads an item that is a result. Returns `undefined` for other items. */
export function readResultItem(
  item: Json,
  { place, recollection }: { readonly place: string; readonly recollection: Recollection },
): ClientResult | undefined {
  const result = (content: string): ClientResult => {
    return { role: "tool", callId: answeredId(item, { place, recollection }), content };
  };
  const { output } = item;
  switch (item["type"]) {
    case "function_call_output":
    case "custom_tool_call_output":
    case "local_shell_call_output":
      return result(contentText(output, `${place}.output`, outputForm));
    case "shell_call_output":
      return result(shellOutput(output, `${place}.output`));
    case "apply_patch_call_output": {
      const status = optionalText(item["status"], `${place}.status`);
      const said = optionalText(output, `${place}.output`);
      if (status === undefined && said === undefined)
        throw invalid(`${place}.output`, "it is missing; expected text");
      return result([status, said].filter(Boolean).join("\n"));
    }
    default:
      return undefined;
  }
}

const outputForm = inputForm(responsesParts);

function callId(item: Json, place: string): string {
  return textOf(item["call_id"], `${place}.call_id`);
}

function nameOf(item: Json, place: string): string {
  const name = textOf(item["name"], `${place}.name`);
  const namespace = optionalText(item["namespace"], `${place}.namespace`);
  return namespace === undefined ? name : flatName({ namespace, name });
}

function readAction(
  item: Json,
  {
    name,
    form,
    member,
    place,
  }: {
    readonly name: string;
    readonly form: ActionForm;
    /** The member that contains the call's object. */
    readonly member: string;
    readonly place: string;
  },
): ClientCall {
  const action = objectOf(item[member], `${place}.${member}`);
  return { id: callId(item, place), name, argumentsText: actionArguments(form, action) };
}

/** Returns the id of the call that a result answers. Clients use the item's id or the call's id. */
function answeredId(
  item: Json,
  { place, recollection }: { readonly place: string; readonly recollection: Recollection },
): string {
  // A result of `local_shell` may have no other id.
  const isUnnamed = item["type"] === "local_shell_call_output" && isAbsent(item["call_id"]);
  const id = isUnnamed ? textOf(item["id"], `${place}.id`) : callId(item, place);
  const call = recollection.item?.(id);
  return call === undefined ? id : callId(objectOf(call, place), place);
}

/** Formats the output and the exit of each command for the policy. */
function shellOutput(output: unknown, place: string): string {
  if (typeof output === "string") return output;
  const chunks = listOf(output, place).map((value, index) => {
    const where = `${place}[${index}]`;
    const { stdout, stderr, outcome } = objectOf(value, where);
    const printed = [
      optionalText(stdout, `${where}.stdout`),
      optionalText(stderr, `${where}.stderr`),
    ];
    return [...printed, ending(outcome, `${where}.outcome`)].filter(Boolean).join("\n");
  });
  return chunks.join("\n");
}

function ending(outcome: unknown, place: string): string {
  if (isAbsent(outcome)) return "";
  const { type, exit_code: code } = objectOf(outcome, place);
  const how = textOf(type, `${place}.type`);
  return how === "exit" ? `[exit code ${JSON.stringify(code)}]` : `[${how}]`;
}
