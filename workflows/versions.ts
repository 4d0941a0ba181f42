/**
 * Every patch id of workflow code, with the date after which it can go (the horizon of 366 days
 * plus retention after its release). None yet: the first release has no older histories.
 */
export const PATCHES = Object.freeze({});
