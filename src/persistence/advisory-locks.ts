/**
 * Every advisory lock of the product by one number, so that no two of them ever meet: a sweep must not wait
 * for an anchor. Locks by name (`hashtextextended`) use the whole 64 bits and meet none of these.
 */
export const ADVISORY_LOCKS = Object.freeze({
  migration: 7_314_001,
  sweep: 7_314_002,
  /** The trigger data_key_kek_not_retired takes it shared. */
  retireKeys: 7_314_003,
  anchors: 7_314_004,
  /** The triggers of revoked_person take it alone, decisions of people shared. */
  revokePeople: 7_314_005,
});
