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

/** The exporters of all trainers, by the name in `--to`. */
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

/** The name of a trainer in `--to`. */
export type ExportTarget = keyof typeof exporters;
