/**
 * Injection tokens of what every process has and no class names: its configuration, its keys, its
 * providers, its log, its second pool.
 */
export const CONFIG = Symbol('Config');
export const KEYS = Symbol('KeysFile');
export const LOG = Symbol('Log');
export const PROVIDERS = Symbol('ProviderRegistry');
/** The pool of the role payments_relay. */
export const RELAY_DATABASE = Symbol('RelayDatabase');
