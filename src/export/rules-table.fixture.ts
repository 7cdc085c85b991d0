import { columnNames } from "../columns/index.ts";
import { exportKinds, type ExportAction } from "./exporter.ts";
import { exporters } from "./exporters.ts";
import { teacherExports } from "./teacher/teacher-exports.ts";

const spelled: Readonly<Record<ExportAction, string>> = {
  keep: "keep",
  cut: "cut",
  "one-row": "one row",
  drop: "drop",
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

/**
 * Renders the rules for side columns as Markdown: the action of each column and trainer, and the trainers' fields,
 * settings and reasons.
 */
export function columnsTable(): string {
  const entries = Object.entries(exporters);
  const actions = entries.map(([name, { columns }]) => [
    name,
    ...columnNames.map((column) => columns.rules[column].action.replace("-", " ")),
  ]);
  const reasons = columnNames.flatMap((column) => {
    const trainers = new Map<string, string[]>();
    for (const [name, { columns }] of entries) {
      const { why, setting } = columns.rules[column];
      const text = `${why} | ${setting === undefined ? "" : `\`${setting}\``}`;
      trainers.set(text, [...(trainers.get(text) ?? []), name]);
    }
    return Array.from(trainers, ([text, names]) => [`\`${column}\``, text, names.join(", ")]);
  });
  const tables = [
    toTable(["trainer", ...columnNames.map((name) => `\`${name}\``)], actions),
    toTable(["column", "the trainer's field, or the reason", "setting", "trainers"], reasons),
  ];
  return `${tables.join("\n\n")}\n`;
}

/** Renders the forms of a teacher's columns as Markdown: the fields of each trainer, or the reason without. */
export function teachersTable(): string {
  const lines = Object.entries(teacherExports).flatMap(([name, { logprobs, top }]) => {
    if (logprobs.action === "refuse" && logprobs === top) return [];
    return [["", logprobs] as const, [" `--teacher-top`", top] as const].map(([flag, rule]) => {
      if (rule.action === "refuse") return [`${name}${flag}`, `*refuse*: ${rule.why}`, ""];
      const { why, setting } = rule;
      return [`${name}${flag}`, why, setting === undefined ? "" : `\`${setting}\``];
    });
  });
  const others = Object.entries(teacherExports).filter(([, { logprobs, top }]) => logprobs === top);
  const reasons = new Map<string, string[]>();
  for (const [name, { logprobs }] of others) {
    reasons.set(logprobs.why, [...(reasons.get(logprobs.why) ?? []), name]);
  }
  const refused = Array.from(reasons, ([why, names]) => [names.join(", "), `*refuse*: ${why}`, ""]);
  return `${toTable(["trainer", "fields", "setting"], [...lines, ...refused])}\n`;
}

function toTable(head: Line, lines: readonly Line[]): string {
  const row = (cells: Line): string => `| ${cells.join(" | ")} |`;
  return [row(head), `|${"---|".repeat(head.length)}`, ...lines.map(row)].join("\n");
}
