import { exportKinds, type ExportAction } from "./exporter.ts";
import { exporters } from "./exporters.ts";

const spelled: Readonly<Record<ExportAction, string>> = {
  keep: "keep",
  cut: "cut",
  "one-row": "one row",
  "leave-out": "leave out",
  "leave-out-group": "leave out group",
  refuse: "refuse",
};

type Line = readonly string[];

/**
 * Renders the rules of all exporters as two Markdown tables: the action of each kind and trainer, and
 * the reasons.
 */
export function rulesTable(): string {
  const entries = Object.entries(exporters);
  const actions = exportKinds.map((kind) => [
    `\`${kind}\``,
    ...entries.map(([, { rules }]) => spelled[rules[kind].action]),
  ]);
  const reasons = exportKinds.flatMap((kind) => {
    const trainers = new Map<string, string[]>();
    for (const [name, { rules }] of entries) {
      const { why } = rules[kind];
      if (why !== "") trainers.set(why, [...(trainers.get(why) ?? []), name]);
    }
    return Array.from(trainers, ([why, names]) => [`\`${kind}\``, why, names.join(", ")]);
  });
  const names = entries.map(([name]) => name);
  const tables = [
    toTable(["kind", ...names], actions),
    toTable(["kind", "reason, or the trainer's field", "trainers"], reasons),
  ];
  return `${tables.join("\n\n")}\n`;
}

function toTable(head: Line, lines: readonly Line[]): string {
  const row = (cells: Line): string => `| ${cells.join(" | ")} |`;
  return [row(head), `|${"---|".repeat(head.length)}`, ...lines.map(row)].join("\n");
}
