import { toWellFormed } from "../text/well-formed.ts";
import { parseJsonObject } from "./json-object.ts";

/**
 * The form of a call in the client's protocol. Function calls with a JSON object have none.
 *
 * - `custom`: a tool that takes plain text (`custom` of Chat Completions and Responses).
 * - `function-call`: the older `functions` of Chat Completions.
 * - `local-shell`, `shell`, `apply-patch`: tools of Responses with parameters that the protocol fixes.
 */
export type CallForm = "custom" | "function-call" | ActionForm;

/** Forms of calls that contain an object of a fixed shape. */
export type ActionForm = "local-shell" | "shell" | "apply-patch";

type Members = Readonly<Record<string, unknown>>;

/**
 * Returns the text for a custom tool: the `input` argument. If the policy wrote other arguments,
 * returns them unchanged, so that the tool can report the mistake.
 */
export function customInput(argumentsText: string): string {
  const members = parseJsonObject(argumentsText);
  const input = members?.["input"];
  const isAlone = typeof input === "string" && Object.keys(members!).length === 1;
  // The client sends the text back, and no prompt can contain half of a surrogate pair.
  return isAlone ? toWellFormed(input) : argumentsText;
}

/** Returns the arguments that give a custom tool this text. */
export function customArguments(input: string): string {
  return JSON.stringify({ input });
}

/**
 * Returns the object of a call in one of the fixed shapes, or `undefined` if the arguments do not
 * have it.
 */
export function toAction(form: ActionForm, argumentsText: string): Members | undefined {
  const members = parseJsonObject(argumentsText);
  if (members === undefined || !shapes[form](members)) return undefined;
  return { ...defaults[form], ...members };
}

/** Converts the object of a call back to the arguments as the policy writes them. */
export function actionArguments(form: ActionForm, action: Members): string {
  const omitted: Members = defaults[form];
  const given = Object.entries(action).filter(([name, value]) => {
    return value !== null && JSON.stringify(value) !== JSON.stringify(omitted[name]);
  });
  return JSON.stringify(Object.fromEntries(given));
}

/** True if the arguments can be sent to the client in this form. */
export function fitsForm(form: CallForm | undefined, argumentsText: string): boolean {
  return isActionForm(form) ? toAction(form, argumentsText) !== undefined : true;
}

/** Returns the arguments that a client sends back for a call that it received in this form. */
export function sentArguments(form: CallForm | undefined, argumentsText: string): string {
  if (form === "custom") return customArguments(customInput(argumentsText));
  if (!isActionForm(form)) return argumentsText;
  return actionArguments(form, toAction(form, argumentsText) ?? {});
}

/** True if calls of the form contain an object of a fixed shape. */
export function isActionForm(form: CallForm | undefined): form is ActionForm {
  return form === "local-shell" || form === "shell" || form === "apply-patch";
}

/** Members that the protocol requires, with the values that mean "not set". */
const defaults = {
  "local-shell": { type: "exec", env: {} },
  shell: { timeout_ms: null, max_output_length: null },
  "apply-patch": {},
} as const satisfies Record<ActionForm, Members>;

const shapes: Readonly<Record<ActionForm, (members: Members) => boolean>> = {
  "local-shell": ({ command }) => isTexts(command),
  shell: ({ commands }) => isTexts(commands),
  "apply-patch": ({ type, path, diff }) => {
    if (typeof path !== "string") return false;
    if (type === "delete_file") return true;
    return (type === "create_file" || type === "update_file") && typeof diff === "string";
  },
};

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}
