/* plan_unit: what the tables of `kiln plan` count in: a small model would be all zeros in GiB. */
#ifndef KILN_CMD_PLAN_UNIT_H
#define KILN_CMD_PLAN_UNIT_H

struct plan_unit {
    const char *name; /* of memory */
    double bytes;
    const char *sent_name; /* of what links carry, whose rates are decimal */
    double sent;
};

/* For devices that hold so many bytes. */
static inline struct plan_unit plan_unit_of(double device_bytes)
{
    return device_bytes < 0x1p31 ? (struct plan_unit){"MiB", 0x1p20, "MB", 1e6}
                                 : (struct plan_unit){"GiB", 0x1p30, "GB", 1e9};
}

#endif
