import { isObject } from "../../../values/is-object.ts";
import type { ArrayType } from "../../../export/columns/array-type.ts";
import type { ExportTarget } from "../../../export/exporters.ts";
import type { RawRow } from "../../../trajectory/violation.ts";
import { memberAt } from "../exported-row.ts";

/** Routes or positions in a record: [rows, layers, entries of a token]. */
export interface FoundRoutes {
  /** The path of the member, for messages. */
  readonly place: string;
  /** The member's name. Either all records of a file have such a member, or none. */
  readonly name: string;
  readonly value: unknown;
  readonly rows: number;
  readonly types: readonly ArrayType[];
  /** True if the last row is zero, because its id was not computed. */
  readonly endsZero?: true;
  /** True if the values are experts: the entries of a layer differ, or are all zero. */
  readonly areExperts: boolean;
  /** True if the array may share bytes with others, and begin anywhere. */
  readonly isShared?: true;
}

/** Sets of kept tokens in a record. */
export interface FoundSets {
  readonly place: string;
  readonly name: string;
  /** `offsets` and `counts` bound the sets of a flat list. `support` has a row for each id, with -1 after the set. */
  readonly form: "offsets" | "counts" | "support";
  readonly ids: unknown;
  readonly bounds?: unknown;
  /** The ids that have sets, and their mask. */
  readonly tokens: readonly unknown[];
  readonly mask: readonly unknown[];
}

/** The arrays of a record. */
export interface FoundColumns {
  readonly routes: readonly FoundRoutes[];
  readonly sets: readonly FoundSets[];
}

const lengthAt = (record: unknown, path: string): number => listAt(record, path).length;

function listAt(record: unknown, path: string): readonly unknown[] {
  const list = memberAt(record, path);
  return Array.isArray(list) ? (list as readonly unknown[]) : [];
}

const none: FoundColumns = { routes: [], sets: [] };

function ofSlime(record: RawRow, as: "slime" | "miles"): FoundColumns {
  const tokens = listAt(record, "tokens");
  const mask = listAt(record, "loss_mask");
  const array = (name: string, areExperts: boolean): FoundRoutes => ({
    place: name,
    name,
    value: record[name],
    rows: tokens.length - 1,
    types: as === "slime" ? ["uint8", "int32"] : ["int32"],
    areExperts,
  });
  const routes = array("rollout_routed_experts", true);
  if (as === "miles") return { routes: [routes, array("rollout_indexer_topk", false)], sets: [] };
  const name = "rollout_top_p_token_ids";
  const set = {
    place: name,
    name,
    form: "offsets",
    ids: record[name],
    bounds: record["rollout_top_p_token_offsets"],
    tokens: tokens.slice(tokens.length - mask.length),
    mask,
  } as const;
  return { routes: [routes], sets: [set] };
}

function ofVerl(record: RawRow): FoundColumns {
  const outputs = "outputs" in record ? listAt(record, "outputs") : [record];
  const routes = outputs.map((output, index): FoundRoutes => {
    const name = "routed_experts";
    return {
      place: "outputs" in record ? `outputs[${index}].${name}` : name,
      name,
      value: memberAt(output, name),
      rows: lengthAt(output, "prompt_ids") + lengthAt(output, "response_ids"),
      types: ["uint8", "int16", "int32"],
      endsZero: true,
      areExperts: true,
    };
  });
  return { routes, sets: [] };
}

function ofSkyrl(record: RawRow): FoundColumns {
  const [routes, support] = ["rollout_expert_indices", "rollout_sample_support"] as const;
  const response = listAt(record, "response_ids");
  return {
    routes: [
      {
        place: routes,
        name: routes,
        value: record[routes],
        rows: lengthAt(record, "prompt_token_ids") + response.length - 1,
        types: ["uint8", "int16", "int32"],
        areExperts: true,
      },
    ],
    sets: [
      {
        place: support,
        name: support,
        form: "support",
        ids: record[support],
        tokens: response,
        mask: listAt(record, "loss_masks"),
      },
    ],
  };
}

function ofPrimeRl(record: RawRow): FoundColumns {
  const place = "sample.routed_experts";
  const rows = lengthAt(record, "sample.token_ids");
  const types = ["uint8", "int16", "int32"] as const;
  const value = memberAt(record, place);
  const routes = {
    place,
    name: place,
    value,
    rows,
    types,
    endsZero: true,
    areExperts: true,
  } as const;
  return { routes: [routes], sets: [] };
}

function ofVerifiers(record: RawRow): FoundColumns {
  const nodes = listAt(record, "nodes").map((node) => (isObject(node) ? node : {}));
  const routes = nodes.map((node, index): FoundRoutes => ({
    place: `nodes[${index}].routed_experts`,
    name: "routed_experts",
    value: node["routed_experts"],
    rows: lengthAt(node, "token_ids"),
    types: ["uint8", "uint16"],
    areExperts: true,
    isShared: true,
  }));
  const sets = nodes.flatMap((node, index): FoundSets[] => {
    if (node["sampled"] !== true) return [];
    const tokens = listAt(node, "token_ids");
    return [
      {
        place: `nodes[${index}].sampling_mask`,
        name: "sampling_mask",
        form: "counts",
        ids: memberAt(node, "sampling_mask.ids"),
        bounds: memberAt(node, "sampling_mask.counts"),
        tokens,
        mask: tokens.map(() => 1),
      },
    ];
  });
  return { routes, sets };
}

function ofArt(record: RawRow): FoundColumns {
  const histories = [record, ...listAt(record, "additional_histories")];
  const routes = histories.flatMap((history, row) =>
    listAt(history, "messages_and_choices").flatMap((choice, index): FoundRoutes[] => {
      if (!isObject(choice) || !("finish_reason" in choice)) return [];
      const name = "art_moe_routing";
      const rows = lengthAt(choice, "prompt_token_ids") + lengthAt(choice, "token_ids") - 1;
      const value = memberAt(choice, `${name}.routed_experts`);
      const types = ["uint8", "uint16"] as const;
      const place = `${name} of choice ${index} of history ${row}`;
      return [{ place, name, value, rows, types, areExperts: true, isShared: true }];
    }),
  );
  return { routes, sets: [] };
}

/** Finds the places of side columns in a record. Their values are absent if the export has none. */
export function findColumns(as: ExportTarget, record: RawRow): FoundColumns {
  if (as === "slime" || as === "miles") return ofSlime(record, as);
  if (as === "verl") return ofVerl(record);
  if (as === "skyrl") return ofSkyrl(record);
  if (as === "prime-rl") return ofPrimeRl(record);
  if (as === "verifiers") return ofVerifiers(record);
  if (as === "art") return ofArt(record);
  return none;
}
