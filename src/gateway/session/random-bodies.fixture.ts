import fc from "fast-check";
import type { DialectName } from "../dialects/dialect.ts";

/** The client's formatting of JSON, which must not matter. */
export interface Spelling {
  /** White space around every token. */
  readonly space: string;
  /** Interval of escaped characters in texts and names. 0 for none. */
  readonly escapeEvery: number;
  readonly reversesKeys: boolean;
  /** True if objects start with a field that a later one of the same name overrides. */
  readonly repeatsKeys: boolean;
}

/** One body: its items and the fields around them. */
export interface BodyPlan {
  readonly items: readonly unknown[];
  readonly before: Readonly<Record<string, unknown>>;
  readonly after: Readonly<Record<string, unknown>>;
  readonly spelling: Spelling;
}

/** A change of the body for the next request. */
export type BodyChange =
  | { readonly kind: "add"; readonly items: readonly unknown[] }
  | { readonly kind: "edit"; readonly at: number; readonly item: unknown }
  | { readonly kind: "drop" | "mark-last"; readonly count: number }
  | { readonly kind: "fields"; readonly before: boolean; readonly fields: BodyPlan["before"] }
  | { readonly kind: "respell"; readonly spelling: Spelling }
  /** Returns to an earlier body. */
  | { readonly kind: "back"; readonly at: number }
  /** Replaces a byte, for this request only. */
  | { readonly kind: "byte"; readonly at: number; readonly to: number }
  | { readonly kind: "cut" | "splice"; readonly at: number; readonly text: string }
  /** Inserts text before the last bracket. */
  | { readonly kind: "splice-at-end"; readonly text: string };

const text = fc.oneof(
  fc.constantFrom(
    "",
    "Hi",
    'a "quoted" \\ text',
    "über 😀",
    "\ud83d",
    "]}",
    '"messages":[',
    "\n\t",
  ),
  fc.string({ unit: "grapheme", maxLength: 12 }),
);

const chatItem = fc.oneof(
  fc.record({ role: fc.constantFrom("system", "user", "developer"), content: text }),
  fc.record({
    role: fc.constant("user"),
    content: fc.array(fc.record({ type: fc.constant("text"), text })),
  }),
  fc.record({ role: fc.constant("tool"), tool_call_id: text, content: text }),
  fc.record({
    role: fc.constant("assistant"),
    content: fc.option(text),
    tool_calls: fc.array(
      fc.record({ id: text, function: fc.record({ name: text, arguments: text }) }),
      { maxLength: 2 },
    ),
  }),
);

const block = fc.oneof(
  fc.record({ type: fc.constant("text"), text }),
  fc.record({ type: fc.constant("tool_result"), tool_use_id: text, content: text }),
);

const messagesItem = fc.oneof(
  fc.record({ role: fc.constantFrom("user", "system"), content: text }),
  fc.record({ role: fc.constant("user"), content: fc.array(block, { maxLength: 3 }) }),
  fc.record({
    role: fc.constant("assistant"),
    content: fc.array(
      fc.oneof(
        fc.record({ type: fc.constant("thinking"), thinking: text, signature: text }),
        fc.record({ type: fc.constant("text"), text }),
        fc.record({
          type: fc.constant("tool_use"),
          id: text,
          name: text,
          input: fc.dictionary(text, fc.oneof(text, fc.double(), fc.constant(1e300))),
        }),
      ),
    ),
  }),
);

const responsesItem = fc.oneof(
  fc.record({ role: fc.constantFrom("user", "system", "assistant"), content: text }),
  fc.record({
    type: fc.constant("reasoning"),
    id: text,
    content: fc.constant([]),
    encrypted_content: text,
  }),
  fc.record({
    type: fc.constant("function_call"),
    id: text,
    call_id: text,
    name: text,
    arguments: text,
  }),
  fc.record({ type: fc.constant("function_call_output"), call_id: text, output: text }),
  fc.record({ type: fc.constant("item_reference"), id: fc.constantFrom("known", "unknown") }),
  fc.record({
    type: fc.constant("message"),
    role: fc.constant("assistant"),
    id: text,
    content: fc.array(fc.record({ type: fc.constant("output_text"), text }), { maxLength: 2 }),
  }),
);

/** Items of each dialect, and occasionally an invalid one. */
export const itemOf: Readonly<Record<DialectName, fc.Arbitrary<unknown>>> = {
  chat: withRubbish(chatItem),
  messages: withRubbish(messagesItem),
  responses: withRubbish(responsesItem),
};

function withRubbish(item: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 60, arbitrary: item }, { weight: 1, arbitrary: fc.jsonValue() });
}

const tools = fc.constantFrom(
  [],
  [{ type: "function", name: "look", function: { name: "look" } }],
  [
    {
      type: "function",
      name: "send",
      input_schema: { type: "object" },
      function: { name: "send", parameters: { properties: { messages: {}, input: {} } } },
    },
  ],
);

const fields = fc.dictionary(
  fc.constantFrom(
    "model",
    "stream",
    "temperature",
    "tools",
    "system",
    "instructions",
    "stop",
    "n",
    "user",
    "metadata",
    "7",
    "__proto__",
    "max_tokens",
    "messages",
    "input",
    "store",
  ),
  fc.constant(undefined),
  { maxKeys: 4 },
);

/** Fields around a conversation. They rarely contain a second conversation. */
export const fieldsAround = fc
  .tuple(fields, tools, text, fc.nat(400))
  .map(([names, ownTools, ownText, seldom]) =>
    Object.fromEntries(
      Object.keys(names).flatMap((name): [string, unknown][] => {
        switch (name) {
          case "messages":
          case "input":
            return seldom < 100
              ? [[name, seldom < 50 ? [] : [{ role: "user", content: "2" }]]]
              : [];
          case "tools":
            return [[name, ownTools]];
          case "n":
            return [[name, seldom === 121 ? 2 : 1]];
          case "stream":
          case "store":
            return [[name, seldom % 2 === 0]];
          case "temperature":
          case "max_tokens":
            return [[name, 1 + (seldom % 3)]];
          case "metadata":
            return [[name, { session: ownText }]];
          default:
            return [[name, ownText]];
        }
      }),
    ),
  );

export const spellings = fc.record<Spelling>({
  space: fc.constantFrom("", "", " ", "\r\n\t "),
  escapeEvery: fc.constantFrom(0, 0, 1, 3),
  reversesKeys: fc.boolean(),
  repeatsKeys: fc.constantFrom(false, false, false, true),
});

const splices = fc.constantFrom(
  "]",
  "}",
  ",",
  '"',
  "[",
  ",{}",
  '],"messages":[',
  '],"input":[',
  " ",
  "0",
);

/** Changes as clients make them, mostly additions. */
export function changesOf(dialect: DialectName): fc.Arbitrary<BodyChange> {
  const item = itemOf[dialect];
  const at = fc.nat(5000);
  return fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant("add" as const),
        items: fc.array(item, { maxLength: 9 }),
      }),
    },
    fc.record({ kind: fc.constant("edit" as const), at, item }),
    fc.record({ kind: fc.constantFrom("drop" as const, "mark-last" as const), count: fc.nat(4) }),
    fc.record({ kind: fc.constant("fields" as const), before: fc.boolean(), fields: fieldsAround }),
    fc.record({ kind: fc.constant("respell" as const), spelling: spellings }),
    fc.record({ kind: fc.constant("byte" as const), at, to: fc.nat(255) }),
    fc.record({ kind: fc.constant("back" as const), at }),
    fc.record({ kind: fc.constant("splice-at-end" as const), text: splices }),
    fc.record({
      kind: fc.constantFrom("cut" as const, "splice" as const),
      at,
      text: splices,
    }),
  );
}

/** Returns the plan of the next body. */
export function nextPlan(plans: readonly BodyPlan[], change: BodyChange): BodyPlan {
  const plan = plans.at(-1)!;
  const { items } = plan;
  switch (change.kind) {
    case "add":
      return { ...plan, items: [...items, ...change.items] };
    case "edit":
      if (items.length === 0) return plan;
      return { ...plan, items: items.with(change.at % items.length, change.item) };
    case "drop":
      return { ...plan, items: items.slice(0, Math.max(0, items.length - change.count)) };
    case "mark-last": {
      const place = items.length - 1 - change.count;
      const item = items[place];
      if (typeof item !== "object" || item === null) return plan;
      return { ...plan, items: items.with(place, { ...item, cache_control: change.count }) };
    }
    case "fields":
      return { ...plan, [change.before ? "before" : "after"]: change.fields };
    case "back":
      return plans[change.at % plans.length]!;
    case "respell":
      return { ...plan, spelling: change.spelling };
    default:
      return plan;
  }
}

/** Returns a body's bytes. */
export function bodyOf(plan: BodyPlan, field: string, change?: BodyChange): Uint8Array {
  const { items, before, after, spelling } = plan;
  const around = (values: BodyPlan["before"]): string[] =>
    Object.entries(values).map((entry) => member(entry, spelling));
  const fieldsText = [
    ...around(before),
    member([field, items], { ...spelling, reversesKeys: false }),
    ...around(after),
  ];
  const { space } = spelling;
  const bytes = Buffer.from(`${space}{${space}${fieldsText.join(`${space},${space}`)}${space}}`);
  if (change === undefined || bytes.length === 0) return bytes;
  if (change.kind === "byte") bytes[change.at % bytes.length] = change.to;
  if (change.kind === "cut") return bytes.subarray(0, change.at % bytes.length);
  if (change.kind === "splice") {
    const at = change.at % bytes.length;
    return Buffer.concat([bytes.subarray(0, at), Buffer.from(change.text), bytes.subarray(at)]);
  }
  if (change.kind === "splice-at-end") {
    const at = bytes.lastIndexOf("]");
    return Buffer.concat([bytes.subarray(0, at), Buffer.from(change.text), bytes.subarray(at)]);
  }
  return bytes;
}

function member([key, value]: readonly [string, unknown], spelling: Spelling): string {
  const { space } = spelling;
  return `${spellText(key, spelling)}${space}:${space}${spell(value, spelling)}`;
}

function spell(value: unknown, spelling: Spelling): string {
  const { space, reversesKeys, repeatsKeys } = spelling;
  const separator = `${space},${space}`;
  if (Array.isArray(value)) {
    return `[${space}${value.map((item) => spell(item, spelling)).join(separator)}${space}]`;
  }
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value);
    const ordered = reversesKeys ? entries.toReversed() : entries;
    const members = ordered.map((entry) => member(entry, spelling));
    const [first] = ordered;
    if (repeatsKeys && first !== undefined) members.unshift(member([first[0], [0]], spelling));
    return `{${space}${members.join(separator)}${space}}`;
  }
  return typeof value === "string" ? spellText(value, spelling) : (JSON.stringify(value) ?? "null");
}

function spellText(value: string, { escapeEvery }: Spelling): string {
  if (escapeEvery === 0) return JSON.stringify(value);
  const spelled = [...value].map((character, index) =>
    index % escapeEvery === 0
      ? character
          .split("")
          .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
          .join("")
      : JSON.stringify(character).slice(1, -1),
  );
  return `"${spelled.join("")}"`;
}
