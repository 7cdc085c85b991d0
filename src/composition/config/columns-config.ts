import {
  columnNames,
  isColumnName,
  type ColumnName,
  type ColumnSpecs,
} from "../../columns/column-specs.ts";
import { UsageError } from "../../errors.ts";
import { expectedName } from "../../../packages/python-values/src/support/nearest-name.ts";
import { text, type Setting } from "./setting.ts";

/** The settings of side columns. */
export const columnSettings = [
  {
    name: "columns",
    kind: text,
    value: "names",
    help: "side columns of each row, such as routedExperts,topLogprobs=20 (docs/columns.md)",
  },
] as const satisfies readonly Setting[];

/** Side columns as they are requested. The shape of experts may still have to be read from the model's folder. */
export interface ColumnsConfig extends Omit<ColumnSpecs, "routedExperts"> {
  readonly routedExperts?: ColumnSpecs["routedExperts"] | "of-model";
}

const examples = {
  routedExperts: "routedExperts=48x8/128 (layers x experts a token / experts)",
  keptTokens: "keptTokens=20",
  topLogprobs: "topLogprobs=20",
  indexerTopK: "indexerTopK=61x2048 (layers x positions a token)",
} as const satisfies Record<ColumnName, string>;

/**
 * Reads the setting `columns`: names with sizes, separated by commas.
 *
 * @throws UsageError for an unknown name, a missing or unreadable size, or kept tokens without `top-k`.
 */
export function readColumns({
  columns,
  "top-k": topK,
}: {
  readonly columns?: string | undefined;
  readonly "top-k": number;
}): ColumnsConfig | undefined {
  if (columns === undefined) return undefined;
  const config: Partial<Record<ColumnName, unknown>> = {};
  for (const entry of columns.split(",")) {
    const [name = "", size] = entry.trim().split("=", 2);
    if (!isColumnName(name)) {
      const expected = expectedName(name, [...columnNames]);
      throw new UsageError(
        `Cannot use --columns ${columns}: unknown column ${JSON.stringify(name)}, ${expected}`,
      );
    }
    if (config[name] !== undefined) {
      throw new UsageError(
        `Cannot use --columns ${columns}: ${name} is there twice, expected it once`,
      );
    }
    const spec = readSpec(name, size, topK);
    if (spec === undefined) {
      throw new UsageError(
        `Cannot use --columns ${columns}: ${name} has the size ${JSON.stringify(size ?? "")}, expected for example ${examples[name]}`,
      );
    }
    config[name] = spec;
  }
  if (config.keptTokens !== undefined && topK < 2) {
    throw new UsageError(
      `Cannot use --columns ${columns} with --top-k ${topK}: the kept tokens have no limit then, expected --top-k of ` +
        "at least 2, such as --top-k 20",
    );
  }
  return config as ColumnsConfig;
}

function readSpec(name: ColumnName, size: string | undefined, topK: number): unknown {
  switch (name) {
    case "routedExperts": {
      if (size === undefined) return "of-model";
      const [, layerCount, perToken, expertCount] = /^(\d+)x(\d+)\/(\d+)$/.exec(size) ?? [];
      return expertCount === undefined
        ? undefined
        : {
            layerCount: Number(layerCount),
            perToken: Number(perToken),
            expertCount: Number(expertCount),
          };
    }
    case "keptTokens": {
      const maxCount = size === undefined ? topK : readCount(size);
      return maxCount === undefined ? undefined : { maxCount };
    }
    case "topLogprobs": {
      const count = readCount(size);
      return count === undefined ? undefined : { count };
    }
    case "indexerTopK": {
      const [, layerCount, perToken] = /^(\d+)x(\d+)$/.exec(size ?? "") ?? [];
      return perToken === undefined
        ? undefined
        : { layerCount: Number(layerCount), perToken: Number(perToken) };
    }
  }
}

function readCount(size: string | undefined): number | undefined {
  return size !== undefined && /^\d+$/.test(size) ? Number(size) : undefined;
}
