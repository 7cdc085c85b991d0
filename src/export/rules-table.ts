import { exportKinds, type ExportAction } from "./exporter.ts";
import { exporters } from "./exporters.ts";

const spelled: Readonly<Record<ExportAction, string>> = {
  keep: "keep",
  cut: "cut",
  "leave-out": "leave out",
  "leave-out-group": "leave out group",
  refuse: "refuse",
};

/** Every exporter's rules as a Markdown table: a line a kind, a column a trainer, and the reasons below. */
export function rulesTable(): string {
  const entries = Object.entries(exporters);
  const head = ["kind", ...entries.map(([name]) => name)];
  const lines = exportKinds.map((kind) => [
    `\`${kind}\``,
    ...entries.map(([, { rules }]) => spelled[rules[kind].action]),
  ]);
  const reasons = entries.map(([name, { rules }]) => {
    const told = exportKinds.flatMap((kind) =>
      rules[kind].why === "" ? [] : [`\`${kind}\`: ${rules[kind].why}`],
    );
    return `- **${name}.** ${told.join("; ")}.`;
  });
  const row = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const table = [row(head), `|${"---|".repeat(head.length)}`, ...lines.map(row)];
  return `${table.join("\n")}\n\n${reasons.join("\n")}\n`;
}
