import { plainStyle, printable, type TextStyle } from "../../report/text-style.ts";
import { countOf } from "../../text/count-of.ts";
import { rowsText } from "../rows-text.ts";

/** The facts about an environment that `turnwright env list` prints. */
export interface ListedEnvironment {
  readonly environment: string;
  /** Number of tasks of each split. */
  readonly splits: Readonly<Record<string, number>>;
  /** Names of the tools. */
  readonly tools: readonly string[];
  readonly source: string;
}

/** Formats an environment of `turnwright env list` for people. */
export function listedText(
  { environment, splits, tools, source }: ListedEnvironment,
  style: TextStyle = plainStyle,
): string {
  const sizes = Object.entries(splits).map(
    ([split, size]) => `${split} (${size === Infinity ? "endless" : countOf(size, "task")})`,
  );
  const rows: [string, string][] = [
    ["splits", printable(sizes.join(", ") || "none")],
    ["tools", printable(tools.join(", ") || "none")],
    ["tasks", printable(source)],
  ];
  return `${style.heading(printable(environment))}\n${rowsText(rows)}`;
}
