/** A JSON-able value once more, as JSON has it: nobody else writes into it. */
export function plainCopy<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null) return value;
  return JSON.parse(JSON.stringify(value) ?? "null") as Value;
}
