"""What a kernel may use of each package, member by member; written for torch 2.13, numpy 2, triton 3.9, numba 0.68.

Everything here computes on the arrays that it is given, makes new ones, or names a type. What reads or
writes files, loads code, starts processes or threads, evaluates text, calls back into the interpreter or
changes the state of its package is left out, and so is what was not looked at.
"""

from __future__ import annotations

_NAMES = {
    "torch": """
        BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor
        ShortTensor Size Tensor abs abs_ absolute acos acos_ acosh acosh_ adaptive_avg_pool1d adaptive_max_pool1d
        add addbmm addcdiv addcmul addmm addmv addmv_ addr adjoint affine_grid_generator all allclose alpha_dropout
        alpha_dropout_ amax amin aminmax angle any arange arccos arccos_ arccosh arccosh_ arcsin arcsin_ arcsinh
        arcsinh_ arctan arctan2 arctan_ arctanh arctanh_ argmax argmin argsort argwhere as_tensor asarray asin asin_
        asinh asinh_ atan atan2 atan_ atanh atanh_ atleast_1d atleast_2d atleast_3d autocast avg_pool1d baddbmm
        bartlett_window batch_norm batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt
        batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_stats batch_norm_update_stats
        bernoulli bfloat16 bilinear binary_cross_entropy_with_logits bincount binomial bitwise_and
        bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor blackman_window block_diag bmm
        bool broadcast_shapes broadcast_tensors broadcast_to bucketize can_cast cartesian_prod cat cdist cdouble
        ceil ceil_ celu celu_ cfloat chain_matmul chalf channel_shuffle channels_last channels_last_3d cholesky
        cholesky_solve chunk clamp clamp_ clamp_max clamp_max_ clamp_min clamp_min_ clip clip_ clone column_stack
        combinations complex complex128 complex32 complex64 concat concatenate conj conj_physical conj_physical_
        constant_pad_nd contiguous_format conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d
        conv_transpose3d convolution copysign corrcoef cos cos_ cosh cosh_ cosine_embedding_loss cosine_similarity
        count_nonzero cov cross ctc_loss cummax cummin cumprod cumsum cumulative_trapezoid deg2rad deg2rad_ det
        detach detach_ device diag diag_embed diagflat diagonal diagonal_scatter diff digamma dist div divide dot
        double dropout dropout_ dsmm dsplit dstack dtype e einsum embedding embedding_bag embedding_renorm_ empty
        empty_like empty_strided enable_grad eq equal erf erf_ erfc erfc_ erfinv exp exp2 exp2_ exp_ expm1 expm1_
        eye feature_alpha_dropout feature_alpha_dropout_ feature_dropout feature_dropout_ fill fill_ finfo fix fix_
        flatten flip fliplr flipud float float16 float32 float4_e2m1fn_x2 float64 float8_e4m3fn float8_e4m3fnuz
        float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float_power floor floor_ floor_divide fmax fmin fmod frac frac_
        frexp frobenius_norm from_numpy full full_like gather gcd gcd_ ge geqrf get_default_dtype gradient greater
        greater_equal grid_sampler grid_sampler_2d grid_sampler_3d group_norm gru gru_cell gt half hamming_window
        hann_window hardshrink heaviside hinge_embedding_loss histc histogram histogramdd hsmm hsplit hstack hypot
        i0 i0_ igamma igammac iinfo imag index_add index_fill index_put index_put_ index_reduce index_select inf
        inference_mode inner instance_norm int int16 int32 int64 int8 inverse is_complex is_conj is_floating_point
        is_neg is_nonzero is_same_size is_signed is_tensor isclose isfinite isin isinf isnan isneginf isposinf
        isreal istft kaiser_window kl_div kron kthvalue layer_norm layout lcm lcm_ ldexp ldexp_ le lerp less
        less_equal lgamma linspace lobpcg log log10 log10_ log1p log1p_ log2 log2_ log_ log_softmax logaddexp
        logaddexp2 logcumsumexp logdet logical_and logical_not logical_or logical_xor logit logit_ logspace
        logsumexp long lstm lstm_cell lt lu lu_solve lu_unpack margin_ranking_loss masked_fill masked_scatter
        masked_select matmul matrix_exp matrix_power max max_pool1d max_pool1d_with_indices max_pool2d max_pool3d
        maximum mean median memory_format meshgrid min minimum mm mode moveaxis movedim msort mul multinomial
        multiply mv mvlgamma nan nan_to_num nan_to_num_ nanmean nanmedian nanquantile nansum narrow
        native_batch_norm native_channel_shuffle native_dropout native_group_norm native_layer_norm native_norm ne
        neg neg_ negative negative_ newaxis nextafter no_grad nonzero nonzero_static norm norm_except_dim normal
        not_equal nuclear_norm numel ones ones_like orgqr ormqr outer pairwise_distance pca_lowrank pdist permute pi
        pinverse pixel_shuffle pixel_unshuffle poisson poisson_nll_loss polar polygamma positive pow prelu
        preserve_format prod promote_types put qr quantile rad2deg rad2deg_ rand rand_like randint randint_like
        randn randn_like randperm ravel real reciprocal reciprocal_ relu relu_ remainder renorm repeat_interleave
        reshape resolve_conj resolve_neg result_type rms_norm rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell roll
        rot90 round round_ row_stack rrelu rrelu_ rsqrt rsqrt_ rsub scalar_tensor scatter scatter_add scatter_reduce
        searchsorted select select_scatter selu selu_ set_grad_enabled sgn short sigmoid sigmoid_ sign signbit sin
        sin_ sinc sinc_ sinh sinh_ slice_scatter slogdet softmax sort split split_with_sizes spmm sqrt sqrt_ square
        square_ squeeze stack std std_mean stft strided sub subtract sum svd svd_lowrank swapaxes swapdims t take
        take_along_dim tan tan_ tanh tanh_ tensor tensor_split tensordot threshold threshold_ tile topk trace
        transpose trapezoid trapz triangular_solve tril tril_indices triplet_margin_loss triu triu_indices
        true_divide trunc trunc_ uint16 uint32 uint64 uint8 unbind unflatten unique unique_consecutive unravel_index
        unsqueeze vander var var_mean vdot view_as_complex view_as_real vmap vsplit vstack where xlogy xlogy_ zero_
        zeros zeros_like
    """,
    "torch.nn": """
        AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveLogSoftmaxWithLoss AdaptiveMaxPool1d
        AdaptiveMaxPool2d AdaptiveMaxPool3d AlphaDropout AvgPool1d AvgPool2d AvgPool3d BCELoss BCEWithLogitsLoss
        BatchNorm1d BatchNorm2d BatchNorm3d Bilinear Buffer CELU CTCLoss ChannelShuffle CircularPad1d CircularPad2d
        CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d
        ConvTranspose3d CosineEmbeddingLoss CosineSimilarity CrossEntropyLoss CrossMapLRN2d Dropout Dropout1d
        Dropout2d Dropout3d ELU Embedding EmbeddingBag FeatureAlphaDropout Flatten Fold FractionalMaxPool2d
        FractionalMaxPool3d GELU GLU GRU GRUCell GaussianNLLLoss GroupNorm Hardshrink Hardsigmoid Hardswish Hardtanh
        HingeEmbeddingLoss HuberLoss Identity InstanceNorm1d InstanceNorm2d InstanceNorm3d KLDivLoss L1Loss LPPool1d
        LPPool2d LPPool3d LSTM LSTMCell LayerNorm LeakyReLU Linear LinearCrossEntropyLoss LocalResponseNorm
        LogSigmoid LogSoftmax MSELoss MarginRankingLoss MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d
        MaxUnpool3d Mish Module ModuleDict ModuleList MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss
        MultiheadAttention NLLLoss NLLLoss2d PReLU PairwiseDistance Parameter ParameterDict ParameterList
        PixelShuffle PixelUnshuffle PoissonNLLLoss RMSNorm RNN RNNBase RNNCell RNNCellBase RReLU ReLU ReLU6
        ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d SELU
        Sequential SiLU Sigmoid SmoothL1Loss SoftMarginLoss Softmax Softmax2d Softmin Softplus Softshrink Softsign
        Tanh Tanhshrink Threshold Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder
        TransformerEncoderLayer TripletMarginLoss TripletMarginWithDistanceLoss Unflatten Unfold Upsample
        UpsamplingBilinear2d UpsamplingNearest2d ZeroPad1d ZeroPad2d ZeroPad3d
    """,
    "torch.nn.functional": """
        adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
        adaptive_max_pool1d_with_indices adaptive_max_pool2d adaptive_max_pool2d_with_indices adaptive_max_pool3d
        adaptive_max_pool3d_with_indices affine_grid alpha_dropout avg_pool1d avg_pool2d avg_pool3d batch_norm
        bilinear binary_cross_entropy binary_cross_entropy_with_logits celu celu_ channel_shuffle conv1d conv2d
        conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d cosine_embedding_loss cosine_similarity
        cross_entropy ctc_loss dropout dropout1d dropout2d dropout3d elu elu_ embedding embedding_bag
        feature_alpha_dropout fold fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d
        fractional_max_pool3d_with_indices gaussian_nll_loss gelu glu grid_sample group_norm grouped_mm
        gumbel_softmax hardshrink hardsigmoid hardswish hardtanh hardtanh_ hinge_embedding_loss huber_loss
        instance_norm interpolate kl_div l1_loss layer_norm leaky_relu leaky_relu_ linear linear_cross_entropy
        local_response_norm log_softmax logsigmoid lp_pool1d lp_pool2d lp_pool3d margin_ranking_loss max_pool1d
        max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d max_pool3d_with_indices max_unpool1d
        max_unpool2d max_unpool3d mish mse_loss multi_head_attention_forward multi_margin_loss
        multilabel_margin_loss multilabel_soft_margin_loss native_channel_shuffle nll_loss normalize one_hot pad
        pairwise_distance pdist pixel_shuffle pixel_unshuffle poisson_nll_loss prelu relu relu6 relu_ rms_norm rrelu
        rrelu_ scaled_dot_product_attention scaled_grouped_mm scaled_mm selu selu_ sigmoid silu smooth_l1_loss
        soft_margin_loss softmax softmin softplus softshrink softsign tanh tanhshrink threshold threshold_
        triplet_margin_loss triplet_margin_with_distance_loss unfold upsample upsample_bilinear upsample_nearest
    """,
    "torch.nn.init": """
        calculate_gain constant constant_ dirac dirac_ eye eye_ kaiming_normal kaiming_normal_ kaiming_uniform
        kaiming_uniform_ normal normal_ ones_ orthogonal orthogonal_ sparse sparse_ trunc_normal_ uniform uniform_
        xavier_normal xavier_normal_ xavier_uniform xavier_uniform_ zeros_
    """,
    "torch.fft": """
        fft fft2 fftfreq fftn fftshift hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ihfft ihfft2 ihfftn irfft irfft2
        irfftn rfft rfft2 rfftfreq rfftn
    """,
    "torch.linalg": """
        cholesky cholesky_ex cond cross det diagonal eig eigh eigvals eigvalsh householder_product inv inv_ex
        ldl_factor ldl_factor_ex ldl_solve lstsq lu lu_factor lu_factor_ex lu_solve matmul matrix_exp matrix_norm
        matrix_power matrix_rank multi_dot norm pinv qr slogdet solve solve_ex solve_triangular svd svdvals
        tensorinv tensorsolve vander vecdot vector_norm
    """,
    "torch.special": """
        airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t chebyshev_polynomial_u
        chebyshev_polynomial_v chebyshev_polynomial_w digamma entr erf erfc erfcx erfinv exp2 expit expm1 gammainc
        gammaincc gammaln hermite_polynomial_h hermite_polynomial_he i0 i0e i1 i1e laguerre_polynomial_l
        legendre_polynomial_p log1p log_ndtr log_softmax logit logsumexp modified_bessel_i0 modified_bessel_i1
        modified_bessel_k0 modified_bessel_k1 multigammaln ndtr ndtri polygamma psi round scaled_modified_bessel_k0
        scaled_modified_bessel_k1 shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u
        shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w sinc softmax spherical_bessel_j0 xlog1py xlogy
        zeta
    """,
    "numpy": """
        abs absolute acos acosh add all allclose amax amin angle any append apply_along_axis apply_over_axes arange
        arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argpartition argsort argwhere around
        array array_equal array_equiv array_split asanyarray asarray asarray_chkfinite ascontiguousarray
        asfortranarray asin asinh astype atan atan2 atanh atleast_1d atleast_2d atleast_3d average bartlett
        base_repr binary_repr bincount bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not
        bitwise_or bitwise_right_shift bitwise_xor blackman block bool bool_ broadcast broadcast_arrays
        broadcast_shapes broadcast_to byte c_ can_cast cbrt cdouble ceil choose clip clongdouble column_stack
        common_type complex128 complex256 complex64 complexfloating compress concat concatenate conj conjugate
        convolve copy copysign copyto corrcoef correlate cos cosh count_nonzero cov cross csingle cumprod cumsum
        cumulative_prod cumulative_sum deg2rad degrees delete diag diag_indices diag_indices_from diagflat diagonal
        diff digitize divide divmod dot double dsplit dstack dtype e ediff1d einsum einsum_path empty empty_like
        equal errstate euler_gamma exp exp2 expand_dims expm1 extract eye fabs fill_diagonal finfo fix flatiter flatnonzero
        flip fliplr flipud float128 float16 float32 float64 float_power floating floor floor_divide fmax fmin fmod
        format_float_positional format_float_scientific frexp fromfunction full full_like gcd generic geomspace
        gradient greater greater_equal half hamming hanning heaviside histogram histogram2d histogram_bin_edges
        histogramdd hsplit hstack hypot i0 identity iinfo imag index_exp indices inexact inf inner insert int16
        int32 int64 int8 int_ intc integer interp intersect1d intp invert isclose iscomplex iscomplexobj isdtype
        isfinite isfortran isin isinf isnan isnat isneginf isposinf isreal isrealobj isscalar issubdtype iterable
        ix_ kaiser kron lcm ldexp left_shift less less_equal lexsort linspace log log10 log1p log2 logaddexp
        logaddexp2 logical_and logical_not logical_or logical_xor logspace long longdouble longlong matmul matvec
        max maximum mean median meshgrid mgrid min min_scalar_type minimum mintypecode mod modf moveaxis multiply
        nan nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile
        nanprod nanquantile nanstd nansum nanvar ndarray ndenumerate ndim ndindex negative newaxis nextafter nonzero
        not_equal number ogrid ones ones_like outer packbits pad partition percentile permute_dims pi piecewise
        place poly poly1d polyadd polyder polydiv polyfit polyint polymul polysub polyval positive pow power prod
        promote_types ptp put put_along_axis putmask quantile r_ rad2deg radians ravel ravel_multi_index real
        real_if_close remainder repeat reshape resize result_type right_shift rint roll rollaxis roots rot90 round
        row_stack s_ searchsorted select shape short sign signbit signedinteger sin sinc single sinh size sort
        sort_complex spacing split sqrt square squeeze stack std subtract sum swapaxes take take_along_axis tan tanh
        tensordot tile trace transpose trapezoid tri tril tril_indices tril_indices_from trim_zeros triu
        triu_indices triu_indices_from true_divide trunc ubyte uint uint16 uint32 uint64 uint8 uintc uintp ulong
        ulonglong union1d unique unique_all unique_counts unique_inverse unique_values unpackbits unravel_index
        unsignedinteger unstack unwrap ushort vander var vdot vecdot vecmat vectorize vsplit vstack where zeros
        zeros_like
    """,
    "numpy.linalg": """
        LinAlgError cholesky cond cross det diagonal eig eigh eigvals eigvalsh inv lstsq matmul matrix_norm
        matrix_power matrix_rank matrix_transpose multi_dot norm outer pinv qr slogdet solve svd svdvals tensordot
        tensorinv tensorsolve trace vecdot vector_norm
    """,
    "numpy.fft": """
        fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2 rfftfreq
        rfftn
    """,
    "triton.language": """
        abs arange argmax argmin associative_scan assume atomic_add atomic_and atomic_cas atomic_max atomic_min
        atomic_or atomic_xchg atomic_xor bfloat16 block_type broadcast broadcast_to cast cat cdiv ceil clamp const
        constexpr cos cumprod cumsum debug_barrier device_assert device_print div_rn dot dot_scaled dtype erf exp
        exp2 expand_dims fdiv flip float16 float32 float64 float8e4b15 float8e4b8 float8e4nv float8e5 float8e5b16
        floor fma full gather histogram int1 int16 int32 int64 int8 interleave join load load_tensor_descriptor log
        log2 make_block_ptr make_tensor_descriptor max max_constancy max_contiguous maximum min minimum multiple_of
        num_programs permute philox program_id rand rand4x randint randint4x randn randn4x range ravel reduce
        reshape rsqrt sigmoid sin softmax sort split sqrt sqrt_rn squeeze static_assert static_print static_range
        store store_tensor_descriptor sum swizzle2d tensor tensor_descriptor topk trans tuple uint16 uint32 uint64
        uint8 umulhi unsqueeze view void where xor_sum zeros zeros_like
    """,
    "triton": """Config autotune cdiv heuristics jit next_power_of_2 reinterpret set_allocator""",
    "numba": """
        b1 bool bool_ boolean byte c16 c8 cfunc char complex128 complex64 double f4 f8 float32 float64
        get_num_threads get_thread_id guvectorize i1 i2 i4 i8 int16 int32 int64 int8 int_ intc intp jit
        literal_unroll long_ longlong njit none optional pndindex prange short size_t ssize_t stencil typeof u1 u2
        u4 u8 uchar uint uint16 uint32 uint64 uint8 uintc uintp ulong ulonglong ushort vectorize void
    """,
    "numba.cuda": """
        jit grid gridsize gridDim blockDim blockIdx threadIdx warpsize laneid syncthreads syncthreads_count
        syncthreads_and syncthreads_or syncwarp threadfence threadfence_block threadfence_system shared local const
        atomic popc fma cbrt brev clz ffs selp fp16 to_device device_array device_array_like as_cuda_array
        synchronize reduce Reduce shfl_sync shfl_up_sync shfl_down_sync shfl_xor_sync vote_sync_intrinsic all_sync
        any_sync ballot_sync cg libdevice is_available
    """,
    "torch.nn.parameter": """Parameter Buffer""",
    "torch.autograd": """Function""",
    "torch.cuda": """
        current_device device device_count get_device_name get_device_properties get_device_capability is_available
        synchronize
    """,
    "torch.version": """cuda hip""",
    "triton.tools": """tensor_descriptor""",
    "triton.tools.tensor_descriptor": """TensorDescriptor""",
    "triton.runtime": """driver""",
    "triton.runtime.driver": """active""",
    "triton.runtime.driver.active": """get_active_torch_device get_current_target""",
    "triton.runtime.driver.active.utils": """get_device_properties""",
    "numpy.random": """normal permutation rand randint randn random standard_normal uniform""",
    "numpy.lib": """
    """,
    "numpy.lib.stride_tricks": """as_strided sliding_window_view""",
    "numpy.typing": """ArrayLike DTypeLike NDArray""",
    "triton.language.math": """abs ceil cos div_rn erf exp exp2 fdiv floor fma log log2 rsqrt sin sqrt sqrt_rn umulhi""",
    "triton.language.standard": """
        argmax argmin cdiv cumprod cumsum flip interleave max min ravel sigmoid softmax sort sum swizzle2d topk
        xor_sum zeros zeros_like squeeze unsqueeze
    """,
    "numba.core": """types""",
    "numba.types": """
        Array Tuple UniTuple bool_ boolean byte c16 c8 complex128 complex64 double f4 f8 float32 float64 i1 i2 i4 i8
        int16 int32 int64 int8 int_ intc intp long_ longlong none u1 u2 u4 u8 uint uint16 uint32 uint64 uint8 uintc
        uintp ulong ulonglong void
    """,
    "triton.language.extra": """libdevice""",
    "scipy": "",
    "scipy.special": """
        cbrt digamma erf erfc erfinv exp10 exp2 expit expm1 gamma gammaln i0 i1 log1p log_softmax logit
        logsumexp ndtr psi softmax xlogy zeta
    """,
    "scipy.linalg": """
        cho_factor cho_solve cholesky det eigh expm inv lstsq lu lu_factor lu_solve norm pinv qr solve
        solve_triangular svd
    """,
}
_NAMES["numba.core.types"] = _NAMES["numba.types"]
ALLOWED = {module: frozenset(names.split()) for module, names in _NAMES.items()}
