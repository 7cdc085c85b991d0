import { arealExporter } from "./areal.ts";
import type { Exporter } from "./exporter.ts";
import { nemoRlExporter } from "./nemo-rl.ts";
import { openrlhfExporter } from "./openrlhf.ts";
import { primeRlExporter } from "./prime-rl.ts";
import { skyrlExporter } from "./skyrl.ts";
import { slimeExporter } from "./slime.ts";
import { tinkerExporter } from "./tinker.ts";
import { trlExporter } from "./trl.ts";
import { verifiersExporter } from "./verifiers.ts";
import { verlExporter } from "./verl.ts";

/** Every trainer's exporter, by the name that `--to` takes. */
export const exporters = {
  slime: slimeExporter,
  trl: trlExporter,
  verl: verlExporter,
  skyrl: skyrlExporter,
  openrlhf: openrlhfExporter,
  areal: arealExporter,
  "prime-rl": primeRlExporter,
  verifiers: verifiersExporter,
  "nemo-rl": nemoRlExporter,
  tinker: tinkerExporter,
} as const satisfies Readonly<Record<string, Exporter>>;

/** A trainer that rows can be exported to. */
export type ExportTarget = keyof typeof exporters;
