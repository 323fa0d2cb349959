// Everything a pointwise chain needs: types, conversions, and the operations on a pixel.
#pragma once

#include "fkl/config.h"
#include "fkl/half.h"
#include "fkl/pixel.h"
#include "fkl/numeric.h"
#include "fkl/convert.h"
#include "fkl/elementwise.h"
#include "fkl/channels.h"
