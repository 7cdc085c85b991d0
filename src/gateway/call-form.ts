/**
 * The form in which a call goes to the client where it is no function with a JSON object:
 *
 * - `custom`: a tool that takes plain text (`custom` of Chat Completions and Responses).
 * - `function-call`: the older `functions` of Chat Completions.
 * - `local-shell`, `shell`, `apply-patch`: tools of Responses whose parameters the protocol fixes.
 */
export type CallForm = "custom" | "function-call" | ActionForm;

/** Forms whose calls hold an object of a fixed shape. */
export type ActionForm = "local-shell" | "shell" | "apply-patch";

type Members = Readonly<Record<string, unknown>>;

/**
 * The text that a custom tool is given: the `input` of the arguments. Where the policy wrote other
 * arguments, these stand there as it wrote them, so that the tool can say what is wrong.
 */
export function customInput(argumentsText: string): string {
  const members = readMembers(argumentsText);
  const input = members?.["input"];
  return typeof input === "string" && Object.keys(members!).length === 1 ? input : argumentsText;
}

/** The arguments as the policy writes them that give a custom tool this text. */
export function customArguments(input: string): string {
  return JSON.stringify({ input });
}

/**
 * The object of a call in one of the fixed shapes.
 *
 * @returns `undefined` where the arguments do not have the shape.
 */
export function toAction(form: ActionForm, argumentsText: string): Members | undefined {
  const members = readMembers(argumentsText);
  if (members === undefined || !shapes[form](members)) return undefined;
  return { ...defaults[form], ...members };
}

/** The arguments as the policy writes them that make up this object of a call. */
export function actionArguments(form: ActionForm, action: Members): string {
  const before: Members = defaults[form];
  const said = Object.entries(action).filter(([name, value]) => {
    return value !== null && JSON.stringify(value) !== JSON.stringify(before[name]);
  });
  return JSON.stringify(Object.fromEntries(said));
}

/** Returns whether the arguments can go to the client in this form. */
export function fitsForm(form: CallForm | undefined, argumentsText: string): boolean {
  return isActionForm(form) ? toAction(form, argumentsText) !== undefined : true;
}

/** The arguments of a call as they are read back from what the client was sent. */
export function sentArguments(form: CallForm | undefined, argumentsText: string): string {
  if (form === "custom") return customArguments(customInput(argumentsText));
  if (!isActionForm(form)) return argumentsText;
  return actionArguments(form, toAction(form, argumentsText) ?? {});
}

/** Returns whether calls of the form hold an object of a fixed shape. */
export function isActionForm(form: CallForm | undefined): form is ActionForm {
  return form === "local-shell" || form === "shell" || form === "apply-patch";
}

/** Members that the protocol wants and that say nothing where they are so. */
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

function readMembers(text: string): Members | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Members)
      : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
