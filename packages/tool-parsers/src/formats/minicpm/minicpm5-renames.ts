import { pythonTruthy, type PyValue } from "../../../../python-values/src/index.ts";

/** A call with its arguments. */
interface NamedCall {
  readonly name: string;
  readonly values: ReadonlyMap<string, PyValue>;
}

/** A tool of the request, and the other names by which the model calls it. */
interface Rename {
  readonly from: readonly string[];
  readonly to: string;
  /** Each parameter of the tool, and the arguments that may supply its value. */
  readonly parameters: readonly (readonly [to: string, from: readonly string[]])[];
  readonly constants?: Readonly<Record<string, PyValue>>;
}

const renames: readonly Rename[] = [
  {
    from: ["get_details_by_phone"],
    to: "get_customer_by_phone",
    parameters: [["phone_number", ["phone_number", "phone"]]],
  },
  {
    from: ["get_details_by_name"],
    to: "get_customer_by_name",
    parameters: [
      ["full_name", ["full_name", "name"]],
      ["date_of_birth", ["date_of_birth", "dob"]],
      ["dob", ["date_of_birth", "dob"]],
    ],
  },
  {
    from: ["get_line_details", "get_line_status", "get_roaming_status"],
    to: "get_details_by_id",
    parameters: [["id", ["line_id", "id"]]],
  },
  { from: ["get_plan_details"], to: "get_details_by_id", parameters: [["id", ["plan_id", "id"]]] },
  {
    from: ["enable_roaming"],
    to: "toggle_roaming",
    parameters: [["line_id", ["line_id", "id"]]],
    constants: { enabled: true },
  },
  {
    from: ["disable_roaming"],
    to: "toggle_roaming",
    parameters: [["line_id", ["line_id", "id"]]],
    constants: { enabled: false },
  },
  {
    from: ["add_refueled_data", "add_data_to_line"],
    to: "refuel_data",
    parameters: [
      ["customer_id", ["customer_id"]],
      ["line_id", ["line_id", "id"]],
      ["amount_gb", ["amount_gb", "gb", "gb_amount", "amount"]],
    ],
  },
];

/**
 * Renames a call as vLLM renames the tools that MiniCPM 5 invents in telecom tasks.
 *
 * **Source:** vllm-project/vllm, `vllm/tool_parsers/minicpm5xml_tool_parser.py`.
 */
export function renameMiniCpmCall(
  call: NamedCall,
  declared: Pick<ReadonlyMap<string, unknown>, "has">,
): NamedCall {
  if (declared.has(call.name)) return call;
  const rename = renames.find(({ from, to }) => from.includes(call.name) && declared.has(to));
  const values = new Map(
    (rename?.parameters ?? []).flatMap(([to, from]) => {
      const value = findValue(call, from);
      return value === undefined || (value === null && from.length > 1) ? [] : [[to, value]];
    }),
  );
  if (rename === undefined || values.size === 0) return call;
  for (const [key, value] of Object.entries(rename.constants ?? {})) values.set(key, value);
  return { name: rename.to, values };
}

/**
 * Returns the result of Python's `or` over the arguments: the first argument that is not empty, otherwise the last one.
 */
function findValue({ values }: NamedCall, keys: readonly string[]): PyValue | undefined {
  const key = keys.find((name) => pythonTruthy(values.get(name) ?? null)) ?? keys.at(-1) ?? "";
  return values.get(key);
}
