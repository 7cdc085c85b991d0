/** The scope of a demonstration, which takes less than a minute. A user may ask for fewer tasks. */
export const demoScope = { taskCount: 32, sampleCount: 4 } as const;
