import { completeSettings, flag, type GivenSettings, type Setting } from "../setup/setting.ts";
import { pickSettings, readDisplay, type Display } from "./display-settings.ts";

/** How a run can be watched while it is played. */
export const watchSettings = [
  {
    name: "view",
    kind: flag,
    help: "show the run in the browser while it is played: its address is printed",
    operational: true,
  },
] as const satisfies readonly Setting[];

/** How a run is shown. */
export interface RunDisplay extends Display {
  /** Whether the run can be looked at in the browser while it is played. Default false. */
  readonly view?: boolean;
}

/** Reads how a command that plays a run shows it. */
export function readRunDisplay(settings: GivenSettings): RunDisplay {
  const { view } = completeSettings(watchSettings, pickSettings(watchSettings, settings));
  return { ...readDisplay(settings), view: view === true };
}
